"""What all brokers share: their logs and topics as values, options of clients, errors."""
