"""What Click lacks: options as dataclasses, plain help, default commands, and words for mistyped ones."""
