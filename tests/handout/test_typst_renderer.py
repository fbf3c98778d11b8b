"""Handouts as they leave the printer: rows, boxes, codes, backs, keys, tags, read back out of the PDF."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import product

import pikepdf
import pytest

from app.handout.document import font_check_document, handout_documents
from app.handout.options import HandoutError, HandoutOptions, Paper, PrintedFigures, SheetLayout
from app.handout.sheet_plan import plan_sheets
from app.handout.symbol_pieces import split_sentence
from app.handout.typst_renderer import TypstRenderer, missing_letters_note
from app.settings import PROJECT
from app.shapes.table import Blank, OneOf, WrittenPattern
from app.sheets import prose
from app.sheets.authoring.worksheet_settings import read_settings
from app.sheets.code_text import answer_in_words, code_shown
from app.sheets.exit_tickets import Ticket, load_tickets, ticket_of_settings
from app.sheets.prose import step_of
from app.sheets.variant import Row, Variant
from app.topics.registry import TOPICS
from tests.helpers.own_sheets import with_own_worksheet
from tests.helpers.own_ticket import OWN_TICKET
from tests.helpers.printed import Glyph, Printed, numbers, read_pdf
from tests.helpers.random_worksheets import random_settings
from tests.helpers.shipped import IN_SYMBOLS, LIBRARY
from tests.helpers.slow import one_in

OWN_TEXTS = ("introduction", "footnote")
ADDRESS = "https://shapes.example.org"
TICKETS = load_tickets(PROJECT / "worksheets")
RENDERER = TypstRenderer()
SCRIPTS = [
    "Ångström Þórsdóttir",
    "Ελένη Παπαδοπούλου",
    "Дмитрий Шостакович",
    "王小明",
    "田中さくら",
    "김철수",
    "محمد علي",
    "שלום כהן",
]


def handout_pdf(options: HandoutOptions, names: Sequence[str] = (), address: str = ADDRESS) -> bytes:
    """The PDF of these options."""
    options = options.check_back(TICKETS)
    return RENDERER.render_handout(handout_documents(options, plan_sheets(LIBRARY, options, names), TICKETS, address))


def squeezed(text: str) -> str:
    """A text without spaces and marks of symbols, as letters set below others lose them in a PDF."""
    return re.sub(r"[\s_·×]", "", text)


def given(variant: Variant) -> str:
    """What a sheet tells its students."""
    rows = (f"{row.letter} {asked(variant, row)} {row.note}" for row in variant.rows)
    code = code_shown(variant)
    program = (*map(str, range(13)), str(code)) if code else ()  # with the numbers of its lines
    texts = (
        variant.title,
        prose.description(variant),
        prose.task(variant),
        *prose.assumptions(variant),
        prose.footnote(variant) or "",
        variant.worksheet.introduction,
        *(question.text for question in variant.worksheet.questions),
        *rows,
        *program,
    )
    return " ".join((*texts, variant.model.about, variant.model.card, prose.report(variant)))


def asked(variant: Variant, row: Row) -> str:
    """What asks for a row on paper: the question of a sheet in steps, or the row's name."""
    step = step_of(variant, row.key)
    return step.question if step else row.name


def rest_of(page: Printed, edge: float) -> bool:
    """Whether the edges of the page are empty, but for the cutting line in their middle."""
    picture = page.picture().astype(int)
    high, wide = picture.shape
    middle = middle_of(high), middle_of(wide)
    rows = [at for at in range(high) if at not in middle[0]]
    columns = [at for at in range(wide) if at not in middle[1]]
    m = int(edge)
    sides = (picture[rows, :m], picture[rows, -m:], picture[:m][:, columns], picture[-m:][:, columns])
    return all((side == 255).all() for side in sides)


def middle_of(length: int) -> range:
    return range(length // 2 - 3, length // 2 + 4)


BY_ROWS = sorted(map(LIBRARY.worksheet, (*LIBRARY.worksheets, *IN_SYMBOLS)), key=lambda worksheet: len(worksheet.rows))
LONGEST = {(worksheet.topic, worksheet.answers): worksheet.key for worksheet in BY_ROWS}.values()  # for each topic


def is_in_words(variant: Variant, blank: Blank) -> bool:
    """Whether the answer of a box is a pattern, or a choice of axes."""
    asked = variant.table.askable[blank.tensor]
    return isinstance(asked, OneOf) and bool(asked.texts)


def boxes_on_paper(variant: Variant) -> int:
    """How many boxes a sheet has to write in: one for each blank, but of questions patterns, two sizes and a line."""
    questions = {row.key for row in variant.rows if row.is_question}
    patterns = [key for key in questions if isinstance(variant.table.askable[key], WrittenPattern)]
    written = (
        len(patterns)
        + 2 * ("clash" in questions)
        + (variant.problem.case is not None and "repair" in variant.worksheet.rows)
    )
    return sum(blank.tensor not in questions for blank in variant.blanks) + written


@pytest.mark.parametrize(
    ("key", "layout"), one_in(7, [*product(LIBRARY.worksheets, ["half"]), *product(LONGEST, ["pair", "full"])])
)
def test_every_worksheet_is_printed_whole(key: str, layout: SheetLayout) -> None:
    variant = LIBRARY.variant(key)
    options = HandoutOptions(worksheet=key, sheets=1, layout=layout, course="COS 1", date="May")
    pages = read_pdf(handout_pdf(options, address=ADDRESS))
    text = " ".join(page.text for page in pages)
    for row in variant.rows:
        assert squeezed(asked(variant, row)).replace("ᵀ", "T") in squeezed(text), row
    boxes = [box for page in pages for box in page.boxes]
    assert len(boxes) == boxes_on_paper(variant)
    assert all(rest_of(page, 14) for page in pages)
    for page in pages:
        assert_inside_halves(page, layout)
    own = numbers(variant.code) | {"1"} | {str(at) for at in range(1, 6)}
    own |= numbers(" ".join(map(variant.axis, variant.blanks)))
    assert numbers(text) <= numbers(given(variant)) | own
    assert f"{ADDRESS}/v/{variant.code}" in [code for page in pages for code in page.codes]


def test_a_program_and_its_questions_need_few_pages() -> None:
    for key in ("bug-one-head", "bug-layer"):
        assert len(read_pdf(handout_pdf(HandoutOptions(worksheet=key, sheets=1, layout="full")))) == 1
    pages = read_pdf(handout_pdf(HandoutOptions(worksheet="bug-layer", sheets=1, large=True)))
    assert ["dim 0" in page.text for page in pages] == [False, False, True]


def test_the_s_of_a_possessive_is_no_symbol() -> None:
    pieces = split_sentence("a head’s score s is Q’s", frozenset({"s", "Q"}))
    assert [piece["base"] for piece in pieces if isinstance(piece, dict)] == ["s", "Q"]


@pytest.mark.parametrize("paper", ["letter", "a4"])
@pytest.mark.parametrize("key", ["llama-7b", "qwen2.5-0.5b"])
def test_the_paper_handouts_take_half_a_page(key: str, paper: Paper) -> None:
    options = HandoutOptions(worksheet=key, sheets=1, paper=paper, back="classic", course="COS 1", date="May")
    front, back = read_pdf(handout_pdf(options))
    assert panels([front]) == 1
    assert min(glyph.size for glyph in front.glyphs) >= 6.45
    said = ["next token", "shapes of these activations", "after the output projection"]
    said += (
        ["open-weights LLM"] if key == "llama-7b" else ["own queries, keys and values.*", "arxiv.org/abs/2412.15115"]
    )
    text = squeezed(front.text)
    assert [words for words in said if squeezed(words) not in text] == []
    assert all(squeezed(words) in squeezed(back.text) for words in ("from today for you", "hopeful"))


def assert_inside_halves(page: Printed, layout: str) -> None:
    """Nothing that is written or to be written into crosses the cutting line, and no box lies over words."""
    assert_nothing_is_cut(page, layout)
    for left, top, right, bottom in page.boxes:
        inside = [g for g in page.glyphs if g.left < right and g.right > left and g.top < bottom and g.bottom > top]
        assert not inside, [g.text for g in inside]


def assert_nothing_is_cut(page: Printed, layout: str) -> None:
    """Nothing that is written or to be written into crosses the cutting line or an edge."""
    down, across = layout == "half", layout == "pair"
    shapes = [(g.left, g.top, g.right, g.bottom) for g in page.glyphs] + page.boxes
    for left, top, right, bottom in shapes:
        assert 0 <= left <= right <= page.width
        assert 0 <= top <= bottom <= page.height
        if down:
            assert (bottom < page.height / 2) == (top < page.height / 2)
        if across:
            assert (right < page.width / 2) == (left < page.width / 2)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["half", "pair"])
@pytest.mark.parametrize("key", ["softmax-of-a-model", "layer-mistral-7b", "cross-bart-base"])
def test_versions_are_whole_whatever_their_numbers(key: str, layout: SheetLayout) -> None:
    options = HandoutOptions(worksheet=key, variants=True, sheets=30, layout=layout)
    pages = read_pdf(handout_pdf(options))
    assert sum(len(page.boxes) for page in pages) == sum(len(s.variant.blanks) for s in plan_sheets(LIBRARY, options))
    for page in pages:
        assert_inside_halves(page, layout)
        assert rest_of(page, 14)


@pytest.mark.parametrize("key", ["llama-7b", "latent-deepseek-v2-lite", "matrices-llama-7b", "costs-llama-7b"])
@pytest.mark.parametrize("paper", ["letter", "a4"])
def test_large_print_is_eighteen_points(key: str, paper: Paper) -> None:
    variant = LIBRARY.variant(key)
    pages = read_pdf(handout_pdf(HandoutOptions(worksheet=key, sheets=1, large=True, paper=paper)))
    words = [g for page in pages for g in page.glyphs if g.size >= 15]
    assert len(words) > 0.8 * sum(len(page.glyphs) for page in pages)
    assert squeezed(variant.rows[-1].name) in squeezed(pages[-1].text)
    assert sum(len(page.boxes) for page in pages) == len(variant.blanks)
    for page in pages:
        assert_inside_halves(page, "full")


@pytest.mark.parametrize(("layout", "mirrored"), [("half", False), ("pair", True), ("full", False)])
def test_front_and_back_of_a_student_lie_behind_each_other(layout: SheetLayout, mirrored: bool) -> None:
    names = ["Ada Lovelace", "Emmy Noether", "Sofja Kowalewskaja"]
    pages = read_pdf(handout_pdf(HandoutOptions(variants=True, layout=layout, back="classic"), names))
    ticket = TICKETS["classic"]
    for front, back in zip(pages[::2], pages[1::2], strict=True):
        assert squeezed(ticket.questions[0].text) in squeezed(back.text)
        assert squeezed(ticket.questions[0].text) not in squeezed(front.text)
        here = [name for name in names if squeezed(name) in squeezed(front.text)]
        assert here
        for name in here:
            (x, y), (x2, y2) = front.where(name), back.where(name)
            middle, half = front.width / 2, front.height / 2
            assert (y < half) == (y2 < half) or layout != "half"
            assert layout != "pair" or (x < middle) == ((x2 < middle) != mirrored)


LONG_TICKET = ticket_of_settings(
    "long",
    {
        "title": "Long " * 30,
        "instruction": "Words of advice. " * 25,
        "questions": [
            {"key": f"q{number}", "text": f"Question {number}? " * 25}
            | {"kind": kind, "options": [f"{option} #box[$x$] " * 10 for option in range(10)]}
            for number, kind in enumerate(("choose-several", "choose-one") * 5)
        ]
        + [{"key": f"t{number}", "text": f"Words {number}? " * 30, "required": True} for number in range(10)],
    },
)


@pytest.mark.parametrize(("layout", "large"), [("half", False), ("pair", False), ("full", True)])
@pytest.mark.parametrize(
    "ticket", [OWN_TICKET, LONG_TICKET, LONG_TICKET.model_copy(update={"questions": LONG_TICKET.questions[10:]})]
)
def test_a_ticket_of_every_kind_fits_its_backs(layout: SheetLayout, large: bool, ticket: Ticket) -> None:
    options = HandoutOptions(layout=layout, large=large, back=ticket.key, sheets=1)
    documents = handout_documents(options, plan_sheets(LIBRARY, options), {ticket.key: ticket}, ADDRESS)
    pages = read_pdf(RENDERER.render_handout(documents))
    printed = squeezed("".join(page.text for page in pages))
    for question in ticket.questions:
        assert all(squeezed(text) in printed for text in (question.text, *question.options, *question.labels))
    for page in pages:
        assert_inside_halves(page, layout)


def test_a_long_sheet_goes_on_with_its_heading() -> None:
    text = read_pdf(handout_pdf(HandoutOptions(worksheet="walk-llama-3.2-1b"), ["Ada Lovelace"]))[0].text
    assert text.count("Llama 3.2 1B, from tokens to logits") == 2
    assert "(continued)" in text
    assert "page 2 of 2" in text
    assert text.count("Ada Lovelace") == 2


def test_names_in_every_script_are_set() -> None:
    pages = read_pdf(handout_pdf(HandoutOptions(), SCRIPTS))
    letters = set("".join(page.text for page in pages))
    for name in SCRIPTS:
        assert set(name.replace(" ", "")) <= letters, name


def test_names_begin_at_the_same_place() -> None:
    pages = read_pdf(handout_pdf(HandoutOptions(layout="full"), SCRIPTS))
    starts = set()
    for page, name in zip(pages, SCRIPTS, strict=True):
        label = page.where("Name")
        letters = [g for g in page.glyphs if g.text in name and abs(g.top - label[1]) < 12 and g.left > label[0] + 22]
        starts.add(round(min(g.left for g in letters) / 3))
    assert len(starts) <= 2, starts  # letters have a little white before them


@pytest.mark.parametrize("layout", ["half", "pair", "full"])
def test_a_footnote_is_set_like_the_text(layout: SheetLayout) -> None:
    [page] = read_pdf(handout_pdf(HandoutOptions(worksheet="qwen2.5-0.5b", sheets=1, layout=layout)))
    text, note, assumption = (
        where_glyph(page, words) for words in ("Qwen2.5 0.5B has", "* To keep things", "Assume that the proj")
    )
    assert page.where("values.*")
    assert page.where("arxiv.org/abs/2412.15115")
    assert note.left == pytest.approx(text.left, abs=1)
    assert note.size == pytest.approx(assumption.size)


def where_glyph(page: Printed, words: str) -> Glyph:
    """The first character of these words."""
    left, top = page.where(words)
    return next(g for g in page.glyphs if (g.left, g.top) == (left, top))


def most_halves(variant: Variant) -> int:
    """How many half pages a sheet with its drawing may take."""
    topic, in_letters = TOPICS[variant.worksheet.topic], variant.worksheet.answers == "letters"
    if topic.subject == "layer" and variant.architecture.has_latent_attention:
        return 4
    has_shared_experts = variant.worksheet.topic == "experts" and "n_sh" in variant.sizes
    if variant.has_dimensions or has_shared_experts or (in_letters and topic.subject in ("parameters", "model")):
        return 3
    is_high = variant.tokens > variant.sizes["d"]
    is_long = in_letters or topic.in_steps or topic.reads_two_texts or variant.worksheet.sentence
    return 1 if topic.subject == "head" and not (is_long or is_high) else 2


@pytest.mark.parametrize(("key", "paper"), one_in(13, product(LIBRARY.worksheets, ["letter", "a4"])))
def test_a_sheet_takes_few_half_pages(key: str, paper: Paper) -> None:
    options = HandoutOptions(worksheet=key, sheets=1, figures="aid", course="COS 1", date="May", paper=paper)
    pages = read_pdf(handout_pdf(options))
    assert panels(pages) <= most_halves(LIBRARY.variant(key))
    smallest = 6.3 if LIBRARY.worksheet(key).answers == "letters" else 6.45
    for page in pages:
        assert min(g.size for g in page.glyphs) >= smallest
        assert_nothing_is_cut(page, "half")
    own = numbers(LIBRARY.variant(key).code) | {str(at) for at in range(1, 6)}
    own |= numbers(" ".join(map(LIBRARY.variant(key).axis, LIBRARY.variant(key).blanks)))
    assert numbers(" ".join(page.text for page in pages)) <= numbers(given(LIBRARY.variant(key))) | own | {"1"}


def test_the_key_has_the_drawing_with_its_numbers() -> None:
    *_tables, page = read_pdf(handout_pdf(HandoutOptions(key="only", sheets=1, figures="blank")))
    text = "".join(g.text for g in page.glyphs)
    for words in ("100", "tokens", "4096", "embedding", "128", "perhead"):
        assert words in text
    assert_nothing_is_cut(page, "full")
    assert rest_of(page, 20)


def panels(pages: Sequence[Printed]) -> int:
    """How many panels a sheet has, as it says at its foot."""
    found = re.search(r"page 1 of (\d+)", pages[0].text)
    assert found
    return int(found[1])


def test_a_table_of_answers_has_a_column_for_what_only_some_models_have() -> None:
    options = HandoutOptions(worksheet="count-llama-7b", variants=True, sheets=4, key="only")
    text = squeezed(read_pdf(handout_pdf(options))[0].text)
    rows = [row.name for row in LIBRARY.variant("count-llama-7b").rows]
    assert [squeezed(name) for name in rows] == sorted(map(squeezed, rows), key=text.index)
    for sheet in plan_sheets(LIBRARY, options):
        has_head = any(row.key == "output_head" for row in sheet.variant.rows)
        line = text[text.index(squeezed(sheet.variant.code)) :]
        whole = f"{sheet.variant.answer(sheet.variant.blanks[-1]):,}"
        assert ("–" in line[: line.index(whole)]) != has_head


def test_every_font_is_the_published_one_with_its_licence() -> None:
    fonts = sorted((PROJECT / "fonts").glob("*.ttf"))
    assert len(fonts) == 4
    about = (PROJECT / "fonts" / "README.md").read_text(encoding="utf-8")
    for font in fonts:
        assert f"`{hashlib.sha256(font.read_bytes()).hexdigest()}`" in about
        licence = font.with_name(font.name.removesuffix("-400-regular.ttf") + ".LICENSE")
        assert "SIL OPEN FONT LICENSE Version 1.1" in licence.read_text(encoding="utf-8")


def test_shared_characters_have_the_forms_of_the_language() -> None:
    fonts = [fonts_in(handout_pdf(HandoutOptions(), [name])) for name in ("直", "直さくら", "直김")]
    assert fonts == [{"NotoSansSC"}, {"NotoSansJP"}, {"NotoSansKR"}]


def fonts_in(pdf: bytes) -> set[str]:
    """The fonts for Chinese, Japanese and Korean that a PDF has letters of."""
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        names = {str(font.BaseFont) for page in opened.pages for font in dict(page.Resources.Font).values()}
    return {name.partition("+")[2].partition("-")[0] for name in names if "NotoSans" in name}


def test_a_letter_without_a_font_stops_nobody() -> None:
    names = ["Zoe 👩\u200d🎓🎉", "Kim ᚠ", *SCRIPTS]
    text = "".join(page.text for page in read_pdf(handout_pdf(HandoutOptions(), names)))
    assert "Zoe □□" in text
    assert "Kim □" in text
    assert set("".join(SCRIPTS).replace(" ", "")) <= set(text)
    missing = TypstRenderer().find_missing_letters(font_check_document(names, "Course ᚠ"))
    assert set(missing) == set("ᚠ👩🎓🎉")
    assert re.search(r"“ᚠ.*U\+16A0.*add a font", missing_letters_note(missing))
    assert missing_letters_note("ᚠᚢᚦᚨ" * 10).count("…") == 1  # for the code points
    assert missing_letters_note("ᚠᚢᚦᚨ" * 11).count("…") == 2
    assert TypstRenderer().find_missing_letters(font_check_document(SCRIPTS, "Course")) == ""


def test_markup_and_formulas_are_printed_as_they_are() -> None:
    course = '#import "x": * $a$ *b* \\ @c'
    names = ["=cmd()|'/C calc'!A0", "#panic()", "Bell\x07 here\x00\x1b"]
    options = HandoutOptions(course=course, date="#{1+1}")
    text = " ".join(page.text for page in read_pdf(handout_pdf(options, ["x", *map(clean, names)])))
    for said in (course, "#{1+1}", "=cmd()|'/C calc'!A0", "#panic()", "Bell here"):
        assert squeezed(said) in squeezed(text), said


def clean(name: str) -> str:
    from app.exchange.class_list import read_names

    return read_names(name + "\n")[0]


def test_the_same_options_give_the_same_bytes() -> None:
    options = HandoutOptions(
        worksheet="softmax-of-a-model", variants=True, sheets=3, back="classic", key="with", seed=5
    )
    sheets = plan_sheets(LIBRARY, options)
    first = handout_pdf(options)
    assert first == TypstRenderer().render_handout(handout_documents(options, sheets, TICKETS, ADDRESS))
    assert first != handout_pdf(replace(options, seed=6))


def test_a_name_keeps_its_version_when_the_list_is_put_in_another_order() -> None:
    options = HandoutOptions(worksheet="softmax-of-a-model", variants=True)
    one = {s.name: s.variant.code for s in plan_sheets(LIBRARY, options, ["A", "B", "C"])}
    other = {s.name: s.variant.code for s in plan_sheets(LIBRARY, options, ["C", "X", "A", "B"])}
    assert {name: other[name] for name in one} == one
    twice = plan_sheets(LIBRARY, options, ["A", "A"])
    assert twice[0].variant.code != twice[1].variant.code


def test_versions_differ_and_run_out_with_a_sentence() -> None:
    sheets = plan_sheets(LIBRARY, HandoutOptions(worksheet="softmax-of-a-model", variants=True, sheets=60))
    assert len({sheet.variant.code for sheet in sheets}) == 60
    one_model = with_own_worksheet(LIBRARY, "count-llama-7b", models=())
    with pytest.raises(HandoutError, match="only 1 version"):
        plan_sheets(one_model, HandoutOptions(worksheet="mine", variants=True, sheets=2))


def test_without_an_address_the_code_alone_is_printed() -> None:
    [page] = read_pdf(handout_pdf(HandoutOptions(sheets=1), address=""))
    assert page.codes == []
    assert "/v/" not in page.text
    assert LIBRARY.variant("llama-7b").code in page.text


def test_the_key_is_filled_in_with_working_and_misconceptions() -> None:
    [page] = read_pdf(handout_pdf(HandoutOptions(key="only", sheets=1)))
    assert "4096/32 = 128" in page.text
    for number in ("100", "4096", "128"):
        assert number in numbers(page.text)
    assert "100 × 4096 Head as wide as the model" in page.text
    assert "4096 × 100 Every matrix transposed" in page.text
    assert page.boxes == []


@pytest.mark.parametrize("key", one_in(8, LIBRARY.worksheets))
def test_every_worksheet_has_a_key_with_every_answer(key: str) -> None:
    variant = LIBRARY.variant(key)
    pages = read_pdf(handout_pdf(HandoutOptions(worksheet=key, key="only", sheets=1)))
    text = " ".join(page.text for page in pages)
    in_words = {
        blank: answer_in_words(variant, blank.tensor) for blank in variant.blanks if is_in_words(variant, blank)
    }
    assert {str(variant.answer(blank)) for blank in variant.blanks if blank not in in_words} <= numbers(text)
    assert all(squeezed(answer) in squeezed(text) for answer in in_words.values())
    for page in pages:
        assert_inside_halves(page, "full")
        assert rest_of(page, 20)


@pytest.mark.parametrize(
    ("key", "count"), [("softmax-of-a-model", 30), ("matrices-llama-7b", 5), ("layer-mistral-7b", 30)]
)
def test_one_table_marks_a_class(key: str, count: int) -> None:
    options = HandoutOptions(worksheet=key, variants=True, sheets=count, key="only")
    pages = read_pdf(handout_pdf(options))
    text = squeezed(" ".join(page.text for page in pages))
    for sheet in plan_sheets(LIBRARY, options):
        line = " ".join(
            (sheet.variant.code, *(f"{n:,}" if n >= 10_000 else str(n) for n in sheet.variant.key.values()))
        )
        assert squeezed(line) in text
    for page in pages:
        assert_inside_halves(page, "full")
        assert rest_of(page, 14)


@pytest.mark.parametrize("figures", ["aid", "blank"])
@pytest.mark.parametrize("key", ["llama-7b", "cross-bart-base"])
def test_drawings_tell_no_answer(key: str, figures: PrintedFigures) -> None:
    """The matrices are drawn, with or without letters, and no number is on them."""
    variant = LIBRARY.variant(key)
    plain = handout_pdf(HandoutOptions(worksheet=key, sheets=1, layout="full"))
    pages = read_pdf(handout_pdf(HandoutOptions(worksheet=key, sheets=1, layout="full", figures=figures)))
    own = {str(at) for at in range(1, 6)}
    assert numbers(" ".join(page.text for page in pages)) <= numbers(given(variant)) | own | numbers(variant.code)
    assert len(pages) >= len(read_pdf(plain))
    for page in pages:
        assert rest_of(page, 14)


def test_a_pdf_is_tagged_for_reading_machines() -> None:
    with pikepdf.open(io.BytesIO(handout_pdf(HandoutOptions(back="classic", key="with")))) as pdf:
        assert pdf.Root.MarkInfo.Marked
        assert pdf.Root.Lang == "en"
        assert pdf.Root.ViewerPreferences.DisplayDocTitle
        assert b"<pdfuaid:part>1</pdfuaid:part>" in pdf.Root.Metadata.read_bytes()
        elements = list(walk(pdf.Root.StructTreeRoot.K))
        kinds = [str(e.S) for e in elements]
        assert kinds.count("/H1") == 3
        assert kinds.count("/Table") == 3
        heads = [e for e in elements if e.S == "/TH"]
        assert all(any(a.get("/Scope") == "/Column" for a in e.A) for e in heads)
        figures = [e for e in elements if e.S == "/Figure"]
        assert [str(e.Alt) for e in figures] == [
            f"QR code that opens {ADDRESS}/v/{LIBRARY.variant('llama-7b').code}"
        ] * 2
        assert kinds.index("/H1") < kinds.index("/Table")


def walk(entry: pikepdf.Object) -> Iterable[pikepdf.Object]:
    """Every element of a tree of tags, in reading order."""
    if isinstance(entry, pikepdf.Array):
        for one in entry:
            yield from walk(one)
    elif isinstance(entry, pikepdf.Dictionary) and "/S" in entry:
        yield entry
        yield from walk(entry.get("/K", pikepdf.Array()))


def test_parts_are_bound_with_their_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.handout.document.SHEETS_PER_DOCUMENT", 10)
    names = [f"Student {at}" for at in range(23)]
    progress = list[tuple[int, int]]()
    options = HandoutOptions(worksheet="softmax-of-a-model", variants=True, key="with")
    documents = handout_documents(options, plan_sheets(LIBRARY, options, names), TICKETS, ADDRESS)
    pdf = RENDERER.render_handout(documents, lambda done, total: progress.append((done, total)))
    assert progress == [(at, 7) for at in range(1, 8)]
    with pikepdf.open(io.BytesIO(pdf)) as opened:
        tree = opened.Root.StructTreeRoot
        keys = [int(key) for key in list(tree.ParentTree.Nums)[::2]]
        assert keys == sorted(set(keys))
        parents = [int(page.StructParents) for page in opened.pages]
        links = [int(note.StructParent) for page in opened.pages for note in page.obj.get("/Annots", ())]
        assert len(set(parents + links)) == len(parents) + len(links)
        assert set(parents + links) == set(keys)
        assert int(tree.ParentTreeNextKey) > max(keys)
        names_of_cells = [bytes(name) for name in list(tree.IDTree.Names)[::2]]
        assert names_of_cells == sorted(set(names_of_cells))
        heads = [e for e in walk(tree.K) if e.S == "/H1"]
        assert len(heads) == 23 + 1 + len({s.variant.code for s in plan_sheets(LIBRARY, options, names)})
        on_pages = {page.obj.objgen for page in opened.pages}
        assert {e.Pg.objgen for e in walk(tree.K) if "/Pg" in e} == on_pages
    assert "Student 22" in " ".join(page.text for page in read_pdf(pdf))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"layout": "third"}, "“third” is not an option for “layout”: choose one of half, pair, full."),
        ({"back": "diary"}, "“diary” is not an option for “back”: choose one of none, classic."),
        ({"sheets": 0}, "from 1 to 5,000"),
        ({"variants": True, "tokens": 50}, "leave “Tokens” empty"),
    ],
)
def test_options_that_cannot_be_used_are_told(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(HandoutError, match=re.escape(sentence)):
        HandoutOptions(**change).check_back(TICKETS)  # type: ignore[arg-type]


def test_a_course_that_is_too_long_is_told() -> None:
    with pytest.raises(HandoutError, match="121 characters"):
        handout_pdf(HandoutOptions(course="x" * 121))


@pytest.mark.parametrize("seed", range(4))
def test_what_an_author_writes_is_printed_as_text(seed: int) -> None:
    settings = {**random_settings(LIBRARY, seed), **dict.fromkeys(OWN_TEXTS, '#eval("1") <b> $W_Q$')}
    worksheet = read_settings("mine", settings, LIBRARY.models, LIBRARY.wording)
    library = replace(LIBRARY, worksheets={"mine": worksheet})
    options = HandoutOptions(worksheet="mine", sheets=1, layout="full", key="with", figures="aid")
    pdf = RENDERER.render_handout(handout_documents(options, plan_sheets(library, options), {}, ADDRESS))
    text = squeezed(" ".join(page.text for page in read_pdf(pdf)))
    assert text.count('#eval("1")<b>WQ') >= len(OWN_TEXTS)
    assert all(row.points_in_words.replace(" ", "") in text for row in library.variant("mine").rows)


@pytest.mark.parametrize(("layout", "large"), [("half", False), ("pair", False), ("full", True)])
def test_more_words_than_a_panel_holds_go_on_in_the_next(layout: SheetLayout, large: bool) -> None:
    words = [f"w{number:04}" for number in range(1000)]
    texts = {name: " ".join(words[at * 500 : at * 500 + 500]) for at, name in enumerate(OWN_TEXTS)}
    library = with_own_worksheet(LIBRARY, **texts)
    options = HandoutOptions(worksheet="mine", sheets=1, layout=layout, large=large)
    pages = read_pdf(RENDERER.render_handout(handout_documents(options, plan_sheets(library, options), {}, ADDRESS)))
    assert re.findall(r"w\d{4}", " ".join(page.text for page in pages)) == words
    assert all(glyph.bottom < page.height - 20 for page in pages for glyph in page.glyphs)


def test_a_word_longer_than_its_column_is_broken() -> None:
    library = with_own_worksheet(LIBRARY, title="W" * 200, introduction="z" * 1000)
    options = HandoutOptions(worksheet="mine", sheets=1)
    pages = read_pdf(RENDERER.render_handout(handout_documents(options, plan_sheets(library, options), {}, ADDRESS)))
    glyphs = [glyph for page in pages for glyph in page.glyphs]
    assert sum(glyph.text == "z" for glyph in glyphs) >= 1000
    assert max(glyph.right for glyph in glyphs) < pages[0].width - 30
