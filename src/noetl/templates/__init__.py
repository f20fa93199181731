"""Templates in playbooks: `{{ … }}` over known values. Pure, bounded, and blind to secrets."""
