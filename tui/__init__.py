"""What a person meets: the app and the command line."""
