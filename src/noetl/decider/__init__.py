"""What should happen next: state in, decisions out. Every branch about the future is here."""
