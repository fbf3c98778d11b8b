"""Which sentences of the wording the code asks for, found in the code: the keys that an expression can have."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from tests.helpers.source_code import app_modules


class UnknownKeysError(Exception):
    """An expression whose keys aren't declared; the message is the module and the expression."""


@dataclass(frozen=True)
class Keys:
    """Finds the keys that one module's expressions can have.

    `known` declares the keys of expressions that the code doesn't reveal, by their module's last name and their source:
    {"head_page: model.norm": ("RMSNorm",)}.
    """

    module: str
    known: Mapping[str, Collection[str]]

    @property
    def tree(self) -> ast.Module:
        return app_modules()[self.module]

    def of(self, node: ast.AST, scope: ast.AST) -> set[str]:
        """The keys of an expression within a function; raises UnknownKeysError.

        >>> tree = ast.parse('key = "mask" if causal else f"window-{side}"')
        >>> sorted(Keys("app.head_page", {"head_page: side": ("left", "right")}).of(tree.body[0].value, tree))
        ['mask', 'window-left', 'window-right']
        """
        source = f"{self.module.rpartition('.')[2]}: {ast.unparse(node)}"
        if source in self.known:
            return set(self.known[source])
        match node:
            case ast.Constant(value=str() | int() as value):
                return {str(value)}
            case ast.IfExp():
                return self.of(node.body, scope) | self.of(node.orelse, scope)
            case ast.BoolOp():
                return set[str]().union(*(self.of(each, scope) for each in node.values)) - {""}
            case ast.FormattedValue():
                return self.of(node.value, scope)
            case ast.JoinedStr():
                return {"".join(parts) for parts in product(*(self.of(each, scope) for each in node.values))}
            case ast.Subscript(value=ast.Dict() as table):
                return self._all(table.values, scope)
            case ast.Call(func=ast.Attribute(value=ast.Dict() as table, attr="get"), args=[_, default]):
                return self._all([*table.values, default], scope)
            case ast.Call(func=ast.Name(id="next"), args=[ast.GeneratorExp(elt=each), default]):
                return self._all([each, default], scope) - {""}
            case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                return self._returned(name)
            case ast.Name(id=name) if values := [*_assigned(scope, name)]:
                return self._all(values, scope)
            case ast.Name(id=name) if isinstance(scope, ast.FunctionDef) and (handed := [*self._handed(scope, name)]):
                return set[str]().union(*(self.of(each, outer) for outer, each in handed))
        raise UnknownKeysError(source)

    def _handed(self, function: ast.FunctionDef, name: str) -> Iterator[tuple[ast.AST, ast.AST]]:
        parameters = [each.arg for each in function.args.args if each.arg != "self"]
        if name in parameters:
            for scope, call in calls(self.tree):
                if _name(call) == function.name:
                    yield scope, call.args[parameters.index(name)]

    def _all(self, nodes: Sequence[ast.AST], scope: ast.AST) -> set[str]:
        return set[str]().union(*(self.of(each, scope) for each in nodes))

    def _returned(self, name: str) -> set[str]:
        found = set[str]()
        functions = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef) and node.name == name]
        if not functions:
            raise UnknownKeysError(f"{self.module}: {name}()")
        for node in ast.walk(functions[0]):
            if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value:
                found |= self.of(_first(node.value), functions[0])
        return found


def _first(node: ast.AST) -> ast.AST:
    if isinstance(node, ast.GeneratorExp):
        node = node.elt
    return node.elts[0] if isinstance(node, ast.Tuple) else node


def _assigned(scope: ast.AST, name: str) -> Iterator[ast.AST]:
    for node in ast.walk(scope):
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                yield from _matching(target, value, name)
            case ast.AugAssign(target=ast.Name(id=changed)) if changed == name:
                yield node  # for which no key is known
            case (
                ast.For(target=target, iter=ast.Tuple(elts=values))
                | ast.comprehension(target=target, iter=ast.Tuple(elts=values))
            ):
                for value in values:
                    yield from _matching(target, value, name)
            case (
                ast.For(target=target, iter=ast.Call() as value)
                | ast.comprehension(target=target, iter=ast.Call() as value)
            ):
                yield from _matching(_first(target), value, name)


def _matching(target: ast.AST, value: ast.AST, name: str) -> Iterator[ast.AST]:
    if isinstance(target, ast.Name) and target.id == name:
        yield value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _matching(one, other, name)


def asked_keys(known: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """The keys that calls of `say` ask for, by section; raises UnknownKeysError."""
    asked = defaultdict[str, set[str]](set)
    for module, tree in app_modules().items():
        keys = Keys(module, known)
        for scope, call in calls(tree):
            if _name(call) == "say" and len(call.args) >= 2 and isinstance(call.args[0], ast.Constant):
                asked[str(call.args[0].value)] |= keys.of(call.args[1], scope)
    return asked


def constructed_keys(module: str, known: Mapping[str, Collection[str]], *names: str) -> set[str]:
    """The keys with which a module makes values of these classes: `Fact("sinks")`."""
    keys = Keys(module, known)
    return set[str]().union(
        *(keys.of(call.args[0], scope) for scope, call in calls(keys.tree) if _name(call) in names and call.args)
    )


def calls(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.Call]]:
    """Every call of a module, with the innermost function around it, or the module."""

    def walk(node: ast.AST, scope: ast.AST) -> Iterator[tuple[ast.AST, ast.Call]]:
        inner = node if isinstance(node, ast.FunctionDef) else scope
        if isinstance(node, ast.Call):
            yield inner, node
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inner)

    return walk(tree, tree)


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
