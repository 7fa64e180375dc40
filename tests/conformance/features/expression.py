# SPDX-License-Identifier: Apache-2.0
"""Expressions of graph files, as docs/graph-format.md describes them: exact integers, or doubles."""
import math
import re

TOKEN = re.compile(r"\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(//|==|!=|<=|>=|[-+*/%<>(),]))")
LEVELS = [["or"], ["and"], ["not"], ["==", "!=", "<", "<=", ">", ">="], ["+", "-"], ["*", "/", "//", "%"]]


class Bad(Exception):
    """The expression has no value, or no syntax."""


def tokens(text):
    at, found = 0, []
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise Bad(f"syntax: {text}")
        found.append(match.group(1) or match.group(2) or match.group(3))
        at = match.end()
    return found


class Evaluator:
    def __init__(self, text, names, real):
        self.todo, self.names, self.real = tokens(text), names, real

    def peek(self):
        return self.todo[0] if self.todo else None

    def take(self, wanted=None):
        if not self.todo or (wanted and self.todo[0] != wanted):
            raise Bad(f"expected {wanted}")
        return self.todo.pop(0)

    def value(self, number):
        if self.real:
            return float(number)
        if isinstance(number, float):
            raise Bad("a real in whole numbers")
        if not -2**63 <= number < 2**63:
            raise Bad("overflow")
        return number

    def level(self, k=0):
        if k == len(LEVELS):
            return self.unary()
        if LEVELS[k] == ["not"]:
            if self.peek() == "not":
                self.take()
                return self.value(int(self.level(k) == 0))
            return self.level(k + 1)
        left = self.level(k + 1)
        while self.peek() in LEVELS[k]:
            operator = self.take()
            left = self.value(self.apply(operator, left, self.level(k + 1)))
        return left

    def apply(self, operator, x, y):
        if operator in ("/", "//", "%") and y == 0:
            raise Bad("division by zero")
        if operator == "/":
            if self.real:
                return x / y
            if x % y:
                raise Bad("does not divide")
            return x // y
        if operator == "//":
            return math.floor(x / y) if self.real else x // y
        if operator == "%":
            return x - y * math.floor(x / y) if self.real else x % y
        if operator in ("and", "or"):
            return int(bool(x) and bool(y)) if operator == "and" else int(bool(x) or bool(y))
        return {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "==": lambda: int(x == y), "!=": lambda: int(x != y),
                "<": lambda: int(x < y), "<=": lambda: int(x <= y), ">": lambda: int(x > y), ">=": lambda: int(x >= y)}[operator]()

    def unary(self):
        if self.peek() == "-":
            self.take()
            return self.value(-self.unary())
        token = self.take()
        if token == "(":
            inside = self.level()
            self.take(")")
            return inside
        if token[0].isdigit() or token[0] == ".":
            return self.value(int(token) if token.isdigit() else float(token))
        if self.peek() == "(":
            return self.value(self.call(token))
        if token not in self.names:
            raise Bad(f"no {token}")
        return self.value(self.names[token])

    def call(self, name):
        self.take("(")
        given = [self.level()]
        while self.peek() == ",":
            self.take()
            given.append(self.level())
        self.take(")")
        if name in ("min", "max"):
            return (min if name == "min" else max)(given)
        if name == "ceil_div" and len(given) == 2:
            if given[1] == 0:
                raise Bad("division by zero")
            return float(math.ceil(given[0] / given[1])) if self.real else -(-given[0] // given[1])
        if name == "clamp" and len(given) == 3:
            return min(max(given[0], given[1]), given[2])
        raise Bad(f"no function {name}")


def evaluate(what, names, real=False):
    """A number of the file, or a string with an expression."""
    if isinstance(what, bool) or not isinstance(what, (int, float, str)):
        raise Bad(f"no number: {what!r}")
    if isinstance(what, str):
        evaluator = Evaluator(what, names, real)
        found = evaluator.level()
        if evaluator.todo:
            raise Bad(f"syntax: {what}")
        return found
    return float(what) if real else Evaluator("0", {}, False).value(what)
