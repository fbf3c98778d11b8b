"""What pages share: services, permissions, forms, limits, errors."""
