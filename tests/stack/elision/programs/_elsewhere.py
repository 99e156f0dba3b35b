"""Helpers in a different file than the program that calls them."""


def twice(callback, x):
    return 2 * callback(x)


def ignored(callback, x):
    callback(x)
    return x
