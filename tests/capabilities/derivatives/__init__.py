"""Derivatives of host functions: rules, finite differences, and fits that use them."""
