"""Derivatives of host functions: rules, finite differences, what is fitted with them."""
