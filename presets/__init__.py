"""What to expect of a link: the documents' facts as data, and the verdict."""
