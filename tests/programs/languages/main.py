"""Exceptions, generators, threads, a stack that is too deep, C's functions by way of ctypes."""
import ctypes
import json
import re
import sys
import threading


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def deep(n):
    return deep(n + 1) + 1


print(fib(20))
try:
    deep(0)
except RecursionError as error:
    print(type(error).__name__)
sums = [0] * 4
threads = [threading.Thread(target=lambda n=n: sums.__setitem__(n, sum(range(1000 * n)))) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sums, re.sub(r"(\w+) (\w+)", r"\2 \1", "hello world"))
compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
values = (ctypes.c_int * 5)(3, 1, 2, 5, 4)
ctypes.CDLL(None).qsort(values, 5, ctypes.sizeof(ctypes.c_int), compare(lambda a, b: a[0] - b[0]))
print(json.dumps(list(values)))
sys.exit(6)
