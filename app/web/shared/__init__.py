"""What every page needs: services, permissions, forms, limits, errors."""
