"""What the cockpit is made of."""
