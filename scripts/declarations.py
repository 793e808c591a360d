# SPDX-License-Identifier: Apache-2.0
"""Reads the declarations of C++ headers, each with the comment that stands for it. It knows as much of C++ as this
repository's headers need: namespaces, classes and their members, functions, variables, aliases, enumerations, concepts,
and macros of a header that declare something, which are expanded. It reads no bodies of functions.

A comment stands for the declaration below it, and for those that follow this one without an empty line between.
"""
import dataclasses
import pathlib
import re

TOKEN = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>R"\((?:.*?)\)"|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')'
    r"|(?P<word>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[\w.]|'\d)*)|(?P<directive>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)"
    r"|(?P<operator>::|->|&&|\|\||[=!<>]=|\.\.\.|[^\s\w])", re.S | re.M)
CLASS_WORDS = ("struct", "class", "union", "enum")
INTERNAL = ("detail", "trace", "ast", "ir", "ptx", "ptxas", "regalloc", "std")  # namespaces that are not for users


class Unreadable(Exception):
    pass


@dataclasses.dataclass
class Token:
    kind: str
    text: str
    line: int  # its first and its last
    last: int
    start: int  # in the source it is of
    end: int
    source: str


@dataclasses.dataclass
class Declaration:
    kind: str  # function, variable, alias, using, concept, enum, class, namespace
    name: str
    scope: str  # "ikat::runtime", "ikat::runtime::Queue"
    header: str
    line: int
    last: int
    signature: str
    comment: list  # its lines, without //
    is_of_group: bool = False  # the comment is that of the declaration before
    is_special: bool = False  # a specialisation, a constructor, an operator, a friend: of something that is named elsewhere
    body: str = ""  # the text of a class or an enumeration
    members: list = dataclasses.field(default_factory=list)
    also: list = dataclasses.field(default_factory=list)  # other names of the same declaration: int a, b, c;


def tokens_of(text, line=None):
    out, at, number = [], 0, 1
    for match in TOKEN.finditer(text):
        number += text.count("\n", at, match.start())
        at = match.start()
        first = line or number
        out.append(Token(match.lastgroup, match.group(), first, line or number + match.group().count("\n"), match.start(),
                         match.end(), text))
    return out


def closing(tokens, i):
    """The index after the bracket that closes tokens[i]."""
    depth = 0
    for j in range(i, len(tokens)):
        if tokens[j].kind == "operator":
            depth += (tokens[j].text in "([{") - (tokens[j].text in ")]}")
            if depth == 0:
                return j + 1
    raise Unreadable(f"line {tokens[i].line}: '{tokens[i].text}' is not closed")


def closing_angle(tokens, i):
    depth, j = 0, i
    while j < len(tokens):
        text = tokens[j].text
        if text in ("(", "[", "{"):
            j = closing(tokens, j)
            continue
        depth += (text == "<") - (text == ">")
        j += 1
        if depth == 0:
            return j
    raise Unreadable(f"line {tokens[i].line}: '<' is not closed")


def comment_text(token):
    text = token.text[2:]
    text = text[1:] if text.startswith("/") else text
    return text[1:] if text.startswith(" ") else text


class Reader:
    def __init__(self, root, header):
        self.root, self.header = pathlib.Path(root), header
        self.macros = {}
        self.breaks = []  # where lines of the declaration begin that is being read

    def read(self):
        text = (self.root / self.header).read_text()
        out = []
        try:
            self.scope(tokens_of(text), "", out, True)
        except (Unreadable, IndexError) as error:
            raise Unreadable(f"{self.header}: {error}")
        return out

    def directive(self, token):
        """Macros with parameters are kept; the text of a table (.def) is put in place of its #include."""
        define = re.match(r"\s*#\s*define\s+(\w+)\(([^)]*)\)(.*)", token.text, re.S)
        if define:
            names = [name.strip() for name in define.group(2).split(",") if name.strip()]
            self.macros[define.group(1)] = (names, define.group(3).replace("\\\n", "\n"))
        undefine = re.match(r"\s*#\s*undef\s+(\w+)", token.text)
        if undefine:
            self.macros.pop(undefine.group(1), None)
        table = re.match(r'\s*#\s*include\s+"([^"]+\.def)"', token.text)
        return tokens_of((self.root / table.group(1)).read_text(), token.line) if table else []

    def expanded(self, tokens, i):
        """tokens[i] is a macro with arguments: what it stands for, and the index after it."""
        end = closing(tokens, i + 1)
        arguments, depth = [[]], 0
        for token in tokens[i + 2:end - 1]:
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
            if token.text == "," and depth == 0:
                arguments.append([])
            else:
                arguments[-1].append(token)
        texts = [self.text(argument, 0, len(argument)) for argument in arguments]
        names, body = self.macros[tokens[i].text]
        given = dict(zip(names, texts))
        given["__VA_ARGS__"] = ", ".join(texts[len(names) - (names[-1:] == ["..."]):])
        body = re.sub(r"#(?!#)\s*(\w+)", lambda m: '"' + given.get(m.group(1), "") + '"', body.replace("##", "\0"))
        body = re.sub(r"\w+", lambda m: given.get(m.group(), m.group()), body)
        body = re.sub(r"\s*\0\s*", "", body)
        return tokens_of(body, tokens[i].line), end

    def scope(self, tokens, name, out, is_public, class_name=None):
        """The declarations of a namespace, or of a class, whose tokens these are."""
        i, comment, last_comment, skipped, edge = 0, [], -1, 0, -1
        previous = None
        while i < len(tokens):
            token = tokens[i]
            if token.kind == "directive":
                head = token.text.strip()
                if last_comment == token.line - 1:  # a macro between a comment and what it declares
                    last_comment = token.last
                if edge == token.line - 1:
                    edge = token.last
                if re.match(r"#\s*el(se|if)", head):  # of alternatives, the first
                    skipped = 1
                    while skipped:
                        i += 1
                        text = tokens[i].text.strip() if tokens[i].kind == "directive" else ""
                        skipped += bool(re.match(r"#\s*if", text)) - bool(re.match(r"#\s*endif", text))
                    i += 1
                    continue
                tokens[i:i + 1] = self.directive(token)
                continue
            if token.kind == "comment":
                if previous and token.line == previous.last and token.line != last_comment:
                    previous.comment = previous.comment or [comment_text(token)]  # after it, on its line
                    if previous.is_of_group:
                        previous.comment, previous.is_of_group = [comment_text(token)], False
                else:
                    if token.line != last_comment + 1:
                        comment = []
                    comment = comment + [comment_text(token)]
                    last_comment = token.last
                i += 1
                continue
            if token.text == "IKAT_REFUSED":  # of a function that is there for its message
                i, previous = self.after_declaration(tokens, i), None
                continue
            if token.kind == "word" and token.text in self.macros and tokens[i + 1].text == "(":
                made, end = self.expanded(tokens, i)
                tokens[i:end] = made
                continue
            if token.text in (";", ",", "}"):
                i += 1
                continue
            if class_name and token.text in ("public", "private", "protected") and tokens[i + 1].text == ":":
                is_public, i = token.text == "public", i + 2
                continue
            if re.fullmatch(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+", token.text):  # another macro
                i = closing(tokens, i + 1) if tokens[i + 1:] and tokens[i + 1].text == "(" else i + 1
                continue
            own = comment if last_comment == token.line - 1 else []
            i, made = self.declaration(tokens, i, name, class_name)
            if made is None:
                previous = None if tokens[i - 1].text != ";" else previous
                continue
            if made.kind == "namespace":
                previous = None
                start, inner = made.body
                if not made.name.split("::")[-1] in INTERNAL:
                    self.scope(tokens[start:i - 1], inner, out, True)
                continue
            if own:
                made.comment = own
            elif previous and made.line <= edge + 1:
                made.comment, made.is_of_group = previous.comment, True
            previous, edge = made, made.last
            if is_public:
                out.append(made)

    def declaration(self, tokens, first, scope, class_name):
        """The declaration that begins at tokens[first], or None, and the index after it."""
        i = first
        is_special, self.breaks = False, []
        while tokens[i].text in ("template", "requires") or tokens[i].text == "[" or tokens[i].kind == "comment":
            if tokens[i].text == "template":
                if tokens[i + 1].text != "<":  # an explicit instantiation
                    return self.after(tokens, i), None
                end = closing_angle(tokens, i + 1)
                is_special |= end == i + 3
                i = end
            elif tokens[i].text == "[":
                i = closing(tokens, i)
            elif tokens[i].kind == "comment":
                i += 1
            else:
                i = self.after_requires(tokens, i + 1)
            self.breaks.append(i)
        head = tokens[i].text
        if head in ("static_assert", "extern") and (head == "static_assert" or tokens[i + 1].kind == "string"):
            return self.after(tokens, i), None
        if head == "friend":
            is_special = True
            if tokens[i + 1].text in CLASS_WORDS or tokens[i + 1].text == "template":
                return self.after(tokens, i), None
        make = lambda kind, name, end, **more: Declaration(  # noqa: E731
            kind, name, scope, self.header, tokens[first].line, tokens[end - 1].last,
            more.pop("signature", None) or self.text(tokens, first, end), [], **more)
        if head == "namespace" or (head == "inline" and tokens[i + 1].text == "namespace"):
            i += 1 + (head == "inline")
            names = []
            while tokens[i].text not in ("{", "="):
                names.append(tokens[i].text)
                i += 1
            inner = "::".join([scope] * bool(scope) + ["".join(names)])
            if tokens[i].text == "=":
                end = self.after(tokens, i)
                return end, make("alias", names[0], end)
            end = closing(tokens, i)
            return end, make("namespace", names[-1] if names else "", end, body=(i + 1, inner))
        if head == "using":
            end = self.after(tokens, i)
            if tokens[i + 1].text == "namespace":
                return end, None
            if tokens[i + 2].text == "=":
                return end, make("alias", tokens[i + 1].text, end, is_special=is_special)
            return end, make("using", tokens[end - 2].text, end, is_special=True)
        if head == "concept":
            end = self.after(tokens, i)
            return end, make("concept", tokens[i + 1].text, end)
        if head in CLASS_WORDS:
            end, made = self.of_class(tokens, first, i, scope, make, is_special)
            if made or end > first:
                return end, made
        return self.of_function_or_variable(tokens, first, i, scope, class_name, make, is_special)

    def of_class(self, tokens, first, i, scope, make, is_special):
        kind = "enum" if tokens[i].text == "enum" else "class"
        keyword = tokens[i].text
        i += 1
        while tokens[i].text in ("class", "struct", "[", "alignas"):
            i = closing(tokens, i + (tokens[i].text == "alignas")) if tokens[i].text in ("[", "alignas") else i + 1
        name = tokens[i].text if tokens[i].kind == "word" else ""
        j = i + bool(name)
        while tokens[j].text == "::":
            name, is_special, j = tokens[j + 1].text, True, j + 2
        if name and tokens[j].text == "<":
            is_special, j = True, closing_angle(tokens, j)
        if tokens[j].text == ";":
            return j + 1, None  # declared, and defined elsewhere
        while tokens[j].text not in ("{", ";"):
            if tokens[j].kind == "word" and tokens[j].text not in ("final",) and tokens[j - 1].text not in (":", "::", ",", "<") \
                    and tokens[j - 1].kind == "word" and tokens[j - 1].text not in ("public", "private", "protected", "virtual",
                                                                                    "final", "typename", "const", "unsigned"):
                return first, None  # a variable or a function of that type
            j += 1
        if tokens[j].text == ";":
            return first, None
        body_end = closing(tokens, j)
        end = self.after(tokens, body_end) if tokens[body_end].text != ";" else body_end + 1
        made = make(kind, name, end, is_special=is_special or not name, signature=self.text(tokens, first, j))
        made.body = self.text(tokens, first, end, as_written=True)
        if kind == "class":
            inner = f"{scope}::{name}" if scope else name
            self.scope(tokens[j + 1:body_end - 1], inner, made.members, keyword != "class", class_name=name)
        return end, made

    def of_function_or_variable(self, tokens, first, i, scope, class_name, make, is_special):
        """Up to the ; or the body."""
        name = name_at = None
        head_end = None  # what is shown ends there
        j, is_value, in_list, also = i, False, False, []
        while True:
            text = tokens[j].text
            if text == ";":
                end, head_end = j + 1, j if also else head_end or j
                break
            if text == "operator" and name is None and not is_value:
                name, is_special, name_at = "operator", True, j
                j += 1
                if tokens[j].text == "(":
                    name, j = "operator()", j + 2
                while tokens[j].text != "(":
                    name += tokens[j].text if tokens[j].kind == "operator" else " " + tokens[j].text
                    j += 1
                continue
            if text == "," and not in_list and (name is None or is_value):
                also.append(name or tokens[j - 1].text)
                name, name_at, is_value, j = None, None, False, j + 1
                continue
            if text in ("(", "["):
                before = tokens[j - 1]
                if text == "(" and name is None and not is_value and before.kind == "word" and before.text not in (
                        "requires", "decltype", "explicit", "noexcept", "alignas"):
                    name, name_at = before.text, j - 1
                j = closing(tokens, j)
                continue
            if text == "<" and not is_value and tokens[j - 1].kind == "word":
                j = closing_angle(tokens, j)
                continue
            if text == "requires":
                j = self.after_requires(tokens, j + 1)
                continue
            if text == "=" and not in_list:
                if name is None:
                    name, name_at = tokens[j - 1].text, j - 1
                    is_special |= name == ">"
                    if tokens[j - 1].text == "]":
                        name = next(t.text for t in reversed(tokens[i:j]) if t.kind == "word")
                    is_value = True
                head_end = head_end or (None if is_value else j)
                is_value = True
            if text == ":" and name is not None and not is_value:
                in_list, head_end = True, j
            if text == "{":
                is_initialiser = in_list and tokens[j - 1].text not in (")", "}")
                if is_value or is_initialiser or (name is None and tokens[j - 1].kind == "word"):
                    if name is None:
                        name, name_at, is_value = tokens[j - 1].text, j - 1, True
                    j = closing(tokens, j)
                    continue
                head_end = head_end or j
                end = closing(tokens, j)
                break
            j += 1
        is_function = name_at is not None and (name.startswith("operator") or tokens[name_at + 1].text == "(")
        if name is None:
            words = [t for t in tokens[i:head_end] if t.kind == "word"]
            name = words[-1].text if words else ""
        if not name:
            return end, None
        is_special |= name == class_name or tokens[(name_at or 1) - 1].text == "~"
        if is_function and not class_name and any(t.text == "->" for t in tokens[i:head_end]) and tokens[i].text == name:
            is_special = True  # a deduction guide
        if is_function and tokens[i].text == name and not class_name:
            is_special = True
        return end, make("function" if is_function else "variable", name, end, is_special=is_special, also=also,
                         signature=self.text(tokens, first, head_end))

    @staticmethod
    def after(tokens, i):
        """The index after the next ; outside of brackets."""
        while tokens[i].text != ";":
            i = closing(tokens, i) if tokens[i].text in ("(", "[", "{") else i + 1
        return i + 1

    @staticmethod
    def after_declaration(tokens, i):
        """The index after the next ;, or a body."""
        while tokens[i].text not in (";", "{"):
            i = closing(tokens, i) if tokens[i].text in ("(", "[") else i + 1
        return closing(tokens, i) if tokens[i].text == "{" else i + 1

    @staticmethod
    def after_requires(tokens, i):
        """A constraint: terms joined by && and ||, each a name with arguments, in parentheses, or an expression of its own."""
        while True:
            while tokens[i].text == "!":
                i += 1
            if tokens[i].text == "requires":
                i += 1
                if tokens[i].text == "(":
                    i = closing(tokens, i)
                i = closing(tokens, i)
            elif tokens[i].text == "(":
                i = closing(tokens, i)
            else:
                while True:
                    i += 1 + (tokens[i].text == "::")
                    if tokens[i].text == "<":
                        i = closing_angle(tokens, i)
                    if tokens[i].text != "::":
                        break
            if tokens[i].text not in ("&&", "||"):
                return i
            i += 1

    def text(self, tokens, first, end, as_written=False):
        """What tokens say, on one line but for template<> and constraints. As it is written if they are of one source."""
        some = [token for token in tokens[first:end] if as_written or token.kind != "comment"]
        breaks = {id(tokens[i]) for i in self.breaks if first < i < end}
        if as_written and some[0].source is some[-1].source:
            text = some[0].source[some[0].start:some[-1].end]
            indent = len(some[0].source[:some[0].start].rpartition("\n")[2])
            return re.sub(rf"^ {{1,{indent}}}", "", text, flags=re.M) if indent else text
        out = ""
        for before, token in zip([None] + some, some):
            if before is not None:
                near = before.source is token.source and before.end == token.start
                out += "\n" if id(token) in breaks else "" if near else " "
            out += token.text
        return re.sub(r" +([,;)])", r"\1", out).rstrip(" ;")


def reached(root, faces):
    """The headers that these include, directly or not, in the order in which they are found."""
    root, out, open_ = pathlib.Path(root), [], list(faces)
    while open_:
        header = open_.pop(0)
        if header in out:
            continue
        out.append(header)
        for path in re.findall(r'^#\s*include "([^"]+\.hpp)"', (root / header).read_text(), re.M):
            path = path if (root / path).exists() else f"include/{path}"
            if (root / path).exists():
                open_.append(path)
    return out
