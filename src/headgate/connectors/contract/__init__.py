"""What a connector offers: its protocol, and the values that its parts take and return."""
