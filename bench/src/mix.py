# SPDX-License-Identifier: MIT
"""The python3 workload: method calls, closures, dictionaries, strings, sorting and json.

usage: mix.py ROUNDS
"""
import json
import re
import sys


class Account:
    def __init__(self, name, balance):
        self.name = name
        self.balance = balance

    def deposit(self, amount):
        self.balance += amount
        return self


def numbers(count):
    state = 12345
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        yield state


def one_round(seed):
    accounts = {f"name-{i}": Account(f"name-{i}", i) for i in range(500)}
    for value in numbers(4000):
        accounts[f"name-{value % 500}"].deposit(value % 97 + seed)
    ranked = sorted(accounts.values(), key=lambda account: (account.balance, account.name))
    text = json.dumps([[account.name, account.balance] for account in ranked])
    found = re.findall(r"name-(\d*7)\b", text)
    primes = [n for n in range(2, 600) if all(n % d for d in range(2, int(n**0.5) + 1))]
    try:
        accounts["nobody"].deposit(1)
    except KeyError as error:
        text += str(error)
    return (len(text) + sum(map(int, found)) + sum(primes) + len(json.loads(text[:-8]))) % 1000003


def main():
    total = 0
    for index in range(int(sys.argv[1])):
        total = (total * 31 + one_round(index)) % 1000000007
    print(total)


main()
