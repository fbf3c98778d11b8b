"""The main job in a real browser: fill in, draw, check, answers, save."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from simulation.browser import load
from simulation.server import Server
from tests.helpers.answer_keys import KEY, LLAMA
from tests.helpers.browser import LONG_WAIT_MS


def box(page: Page, blank: str) -> str:
    return f'input[name="{blank}"]'


def fill(page: Page, answers: dict[str, str]) -> None:
    for blank, text in answers.items():
        page.fill(box(page, blank), text)


def mark(page: Page, blank: str) -> str | None:
    return page.locator(f"td:has({box(page, blank)})").get_attribute("data-mark")


def test_first_screen_is_a_sheet_to_type_into(page: Page) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text("One head of LLaMA 7B")
    expect(page.get_by_label("Queries, rows")).to_be_editable()
    assert page.locator("input[data-blank]").count() == 14
    assert page.locator("input[data-blank]").evaluate_all("boxes => boxes.every(box => box.value === '')")


def test_the_link_to_the_sheet_is_copied(page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#more > summary").click()
    button = page.locator("[data-copy-link]")
    button.click()
    expect(button).to_have_text(str(button.get_attribute("data-done")))
    link = page.get_by_role("link", name="Link to this sheet").evaluate("link => link.href")
    assert page.evaluate("navigator.clipboard.readText()") == link


def test_all_right_is_said_and_marked(page: Page) -> None:
    fill(page, KEY)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_have_text("✓ All 14 are right")
    assert [mark(page, blank) for blank in KEY] == ["right"] * 14


def test_each_kind_of_mark_is_told_apart(page: Page) -> None:
    fill(page, {"queries.rows": "100", "queries.columns": "4096", "values.columns": "4096/32", "weights.rows": "many"})
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("2 of 14 right · 10 empty")
    kinds = [mark(page, f"{key}") for key in ("queries.rows", "queries.columns", "values.columns", "weights.rows")]
    assert kinds == ["right", "wrong", "right", "unreadable"]
    expect(page.locator("#says-queries\\.columns")).to_contain_text("Columns.")
    expect(page.locator("#says-weights\\.rows")).to_contain_text("“many” could not be read")
    expect(page.locator("td:has(input[name='values.columns']) .read-as")).to_have_text("= 128")


def test_a_mark_goes_when_its_text_changes(page: Page) -> None:
    fill(page, {"queries.columns": "4096"})
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#says-queries\\.columns")).not_to_be_empty()
    page.fill(box(page, "queries.columns"), "12")
    assert mark(page, "queries.columns") is None
    expect(page.locator("#says-queries\\.columns")).to_be_empty()


def test_typing_goes_on_while_a_check_is_under_way(page: Page) -> None:
    fill(page, {"input.rows": "100"})

    def type_on(route: Route) -> None:
        page.fill(box(page, "input.columns"), "4096")
        route.continue_()

    page.route("**/sheet/check", type_on)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("1 of 14")
    assert page.input_value(box(page, "input.columns")) == "4096"


@pytest.mark.slow
def test_inner_edges_that_do_not_meet_show_a_gap_while_typing(page: Page) -> None:
    fill(page, {"queries.rows": "100", "queries.columns": "128", "keys.rows": "100", "keys.columns": "4096"})
    expect(page.locator("path.arc.mismatch")).to_have_count(1)
    # The keys fit neither W_K, which is given, nor the queries.
    expect(page.locator(".mismatched text")).to_have_text(["4096 ≠ 128", "4096 ≠ 128"])
    expect(page.locator("figcaption .mismatch").filter(has_text=re.compile("Q.* 128 .*K.* 4096"))).to_have_count(1)
    page.fill(box(page, "keys.columns"), "128")
    expect(page.locator("path.arc.mismatch")).to_have_count(0)


@pytest.mark.slow
def test_an_output_that_cannot_be_added_back_shows_while_typing(page: Page) -> None:
    fill(page, {"input.rows": "100", "input.columns": "4096", "output.rows": "100", "output.columns": "128"})
    expect(page.locator("rect.needed")).to_have_count(1)
    cannot_be_added = re.compile("X.* 4096 .*O.* 128.*cannot be added")
    expect(page.locator("figcaption .mismatch").filter(has_text=cannot_be_added)).to_have_count(1)
    expect(page.locator(".mismatched text", has_text="4096 ≠ 128").first).to_be_visible()
    page.fill(box(page, "output.columns"), "4096")
    expect(page.locator("rect.needed")).to_have_count(0)
    expect(page.locator("figcaption .mismatch")).to_have_count(0)


def test_answers_come_only_after_an_attempt(page: Page) -> None:
    expect(page.get_by_role("button", name="Show answers")).to_have_count(0)
    fill(page, {"queries.rows": "90"})
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".result")).to_contain_text("0 of 14")
    page.locator("#more > summary").click()
    page.get_by_role("button", name="Show answers").click()
    shown = page.locator("tr.answer td:not(.times)")
    expect(shown).to_have_count(14)
    numbers = [int(text.split("\n")[0]) for text in shown.all_inner_texts()]
    assert numbers == list(LLAMA.values())
    assert page.input_value(box(page, "queries.rows")) == "90"


def test_another_model_and_length_make_another_sheet(page: Page) -> None:
    page.get_by_role("combobox", name="Model").select_option(label="Qwen3 0.6B")
    page.get_by_role("textbox", name="Tokens").fill("77")
    page.get_by_role("textbox", name="Tokens").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("One head of Qwen3 0.6B")
    fill(page, {"queries.rows": "77", "queries.columns": "128", "keys.columns": "64"})
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("2 of 14")


def test_impossible_tokens_are_refused_beside_the_field(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    page.goto("/sheet")
    page.get_by_role("textbox", name="Tokens").fill("0")
    page.get_by_role("textbox", name="Tokens").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("from 1 to")
    assert page.get_by_role("textbox", name="Tokens").input_value() == "0"
    context.close()


def test_what_was_typed_survives_a_reload(page: Page) -> None:
    fill(page, {"queries.rows": "100", "keys.rows": "viele"})
    expect(page.locator("output.saved")).to_have_text("Saved")
    page.evaluate("localStorage.clear()")
    page.reload()
    assert page.input_value(box(page, "keys.rows")) == "viele"


def test_what_was_typed_in_the_last_moment_survives_leaving(page: Page) -> None:
    page.fill(box(page, "queries.rows"), "101")
    page.goto("/sheet?worksheet=qwen2.5-0.5b")
    page.goto("/sheet")
    expect(page.locator(box(page, "queries.rows"))).to_have_value("101")


def test_what_was_typed_before_the_script_had_come_is_saved(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page, held, is_late = context.new_page(), list[Route](), True
    page.route("**/*.js*", lambda route: held.append(route) if is_late else route.continue_())
    page.goto("/sheet", wait_until="commit")
    page.fill(box(page, "queries.rows"), "100")
    is_late = False
    for route in held:
        route.continue_()
    expect(page.locator("output.saved")).to_have_text("Saved")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("1 of 14")
    context.close()


def test_marks_come_back_after_a_reload(page: Page) -> None:
    fill(page, {"queries.rows": "100", "queries.columns": "4096"})
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("1 of 14")
    page.reload()
    assert (mark(page, "queries.rows"), mark(page, "queries.columns")) == ("right", "wrong")


@pytest.mark.slow
def test_a_lost_connection_and_a_restarted_server_lose_nothing(browser: Browser, own_app: Server) -> None:
    context = browser.new_context(base_url=own_app.url)
    page = context.new_page()
    page.goto("/sheet")
    page.fill('input[name="queries.rows"]', "100")
    expect(page.locator("output.saved")).to_have_text("Saved")
    own_app.kill()
    page.fill('input[name="queries.columns"]', "128")
    expect(page.locator("output.saved")).to_contain_text("saved in this browser")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("can’t be reached")
    own_app.start()
    expect(page.locator("output.saved")).to_have_text("Saved", timeout=LONG_WAIT_MS)
    own_app.kill()
    page.fill('input[name="keys.columns"]', "129")
    expect(page.locator("output.saved")).to_contain_text("saved in this browser")
    own_app.start()
    page.reload()
    for blank, text in {"queries.rows": "100", "queries.columns": "128", "keys.columns": "129"}.items():
        expect(page.locator(box(page, blank))).to_have_value(text)
    context.close()


def test_a_save_that_overtakes_a_reload_is_shown(page: Page) -> None:
    page.fill(box(page, "keys.columns"), "129")
    expect(page.locator("output.saved")).to_have_text("Saved")

    def write_before_the_save(route: Route) -> None:
        page = route.fetch().text().replace('value="129"', 'value=""')
        route.fulfill(body=re.sub(r'(<data class="kept" value=)"[^"]*"', r"\1'{\"version\":0}'", page))

    page.route("**/sheet", write_before_the_save)
    page.reload()
    expect(page.locator(box(page, "keys.columns"))).to_have_value("129")


@pytest.mark.slow
def test_the_link_opens_the_same_sheet_without_the_answers(page: Page, browser: Browser) -> None:
    page.goto("/sheet?worksheet=llama-7b&model=mistral-7b&tokens=64")
    page.fill(box(page, "queries.rows"), "64")
    expect(page.locator("output.saved")).to_have_text("Saved")
    page.locator("#more > summary").click()
    href = page.get_by_role("link", name="Link to this sheet").get_attribute("href")
    context = browser.new_context(base_url=page.url)
    other = context.new_page()
    other.goto(str(href))
    expect(other.get_by_role("heading", level=1)).to_have_text("One head of Mistral 7B")
    assert other.input_value("input[name='tokens'] >> nth=0") == "64"
    assert other.input_value('input[name="queries.rows"]') == ""
    context.close()


def test_hints_go_further_and_never_tell(page: Page) -> None:
    fill(page, KEY | dict.fromkeys(("queries.columns", "keys.columns", "values.columns"), "4096"))
    page.get_by_role("button", name="Check").click()
    said = [page.locator("p.diagnosis").inner_text()]
    page.get_by_role("button", name="Hint").press("Enter")
    spoken, hint = page.locator(".hint-aloud"), page.locator("p.hint")
    expect(hint).to_be_visible()
    expect(spoken).to_have_text(hint.inner_text())
    said.append(spoken.inner_text())
    expect(page.get_by_role("button", name="Another hint")).to_be_focused()
    page.keyboard.press("Enter")
    expect(spoken).to_contain_text("Look again at “Queries”, “Keys” and “Values” (columns of each)")
    said.append(spoken.inner_text())
    assert page.locator("td.hinted input").evaluate_all("boxes => boxes.map(box => box.name)") == [
        "queries.columns",
        "keys.columns",
        "values.columns",
    ]
    expect(page.get_by_role("button", name="hint")).to_have_count(0)
    assert [sentence for sentence in said if re.search(r"100|128|4,?096", sentence)] == []
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent").strip() == "More"


@pytest.mark.slow
def test_the_buttons_still_do_what_they_say_after_the_last_hint(page: Page) -> None:
    fill(page, KEY | {"output.columns": "128"})
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Hint").click()
    page.get_by_role("button", name="Another hint").click()
    expect(page.locator("td.hinted")).to_have_count(1)
    page.fill(box(page, "output.columns"), "4096")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_have_text("✓ All 14 are right")
    expect(page.locator(".hint-aloud")).to_be_empty()
    expect(page.locator("section.explanation figure")).to_have_count(2)
    expect(page.locator("section.explanation rect.needed")).to_have_count(1)
    page.reload()
    expect(page.locator("section.explanation figure")).to_have_count(2)


@pytest.mark.slow
def test_the_whole_job_works_with_the_keyboard_alone(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the boxes"
    page.focus(box(page, "input.rows"))
    for text in KEY.values():
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.focus(box(page, "output.columns"))
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_have_text("✓ All 14 are right")
    for wanted in ("More", "Run this head"):
        for _ in range(8):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.textContent").strip() == wanted:
                break
        page.keyboard.press("Enter")
    expect(page.locator("table.compared")).to_be_visible(timeout=LONG_WAIT_MS)


def test_focus_lights_the_side_in_the_drawing(page: Page) -> None:
    fill(page, {"queries.columns": "128", "keys.columns": "128"})
    expect(page.locator(".edge[data-blank='keys.columns'] text").first).to_have_text("128")
    page.focus(box(page, "queries.columns"))
    expect(page.locator(".edge.lit").first).to_have_attribute("data-blank", "queries.columns")
    assert page.locator(".edge.kin[data-blank='keys.columns']").count() >= 1


def test_it_works_without_script(browser: Browser, shared_app: Server) -> None:
    """A plain form: fill in, check, answers, run, all with whole pages."""
    context = browser.new_context(base_url=shared_app.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/sheet")
    fill(page, {"queries.rows": "100", "queries.columns": "4096"})
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("status").first).to_contain_text("1 of 14 right")
    assert mark(page, "queries.columns") == "wrong"
    page.get_by_role("button", name="Hint").click()
    page.get_by_role("button", name="Another hint").click()
    expect(page.locator("p.hint")).to_contain_text("Look again at “Queries” (columns).")
    page.locator("#more > summary").click()
    page.get_by_role("button", name="Show answers").click()
    expect(page.locator("tr.answer")).to_have_count(7)
    expect(page.get_by_role("heading", name="What went wrong")).to_be_visible()
    page.locator("#more > summary").click()
    page.get_by_role("button", name="Run this head").click()
    expect(page).to_have_url(re.compile("/runs/"))
    expect(page.locator("table.compared")).to_be_visible(timeout=LONG_WAIT_MS)
    context.close()


def test_nothing_is_asked_of_anyone_else_and_the_first_load_is_light(browser: Browser, shared_app: Server) -> None:
    context = browser.new_context(base_url=shared_app.url)
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    sizes = load(page, "/sheet")
    assert len(requests) >= 5
    assert [url for url in requests if not url.startswith(shared_app.url)] == []
    assert 20_000 < sum(sizes.values()) <= 100_000
    context.close()
