"""An event-sourced runtime for data playbooks. Start reading at domain/, then runtime/."""

__version__ = "0.1.0"
