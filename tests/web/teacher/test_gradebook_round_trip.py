"""A class list of Canvas or Moodle comes in, and the points go back to the right people.

Both importers are written down here as their sources have them: lib/gradebook_importer.rb of Canvas and
grade/import/csv/classes/load_data.php of Moodle.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from itertools import pairwise

import pytest

from tests.helpers.html_page import Page
from tests.helpers.school import Classroom


@dataclass(frozen=True)
class User:
    """An account in the other system; `id` is its own number for it."""

    id: int
    name: str
    sis: str
    login: str
    mail: str = ""

    @property
    def sortable(self) -> str:
        first, _, last = self.name.rpartition(" ")
        return f"{last}, {first}"


# Two have one name, the number of one is the ID of another, and one has no number.
ANN, OTHER_ANN, KIM, JO = USERS = (
    User(101, "Ann Lee", "0012", "ann1", "a1@x.example"),
    User(102, "Ann Lee", "0013", "ann2", "a2@x.example"),
    User(12, "Kim Fox", "101", "kim", "k@x.example"),
    User(104, "Jo Ek", "", "jo", "j@x.example"),
)


def canvas_export(columns: str, users: tuple[User, ...] = USERS) -> str:
    """The gradebook of a course as Canvas writes it, with the columns that the teacher may see."""
    titles = [title for title in ("ID", "SIS User ID", "SIS Login ID") if title in columns.split(", ")]
    rows = [["Student", *titles, "Section", "Old (7)"], ["    Points Possible", *[""] * len(titles), "", "5"], [""]]
    for user in users:
        values = {"ID": user.id, "SIS User ID": user.sis, "SIS Login ID": user.login}
        rows.append([user.sortable, *(str(values[title]) for title in titles), "A", "3"])
    return written(rows)


def canvas_import(text: str, users: tuple[User, ...] = USERS) -> list[tuple[int, str]]:
    """The id of the user whom Canvas gives each row to, 0 for a stranger, and the last cell of the row."""
    header, *rows = csv.reader(io.StringIO(text))
    assert "Student" in header[0]
    assert "ID" in header[1]
    assert re.search(r"SIS\s+User\s+ID", header[2])
    assert re.search(r"SIS\s+Login\s+ID", header[3])
    assert "Section" in header[4]
    given = []
    for row in rows:
        if "Points Possible" in row[0]:
            continue
        number = re.match(r"\s*[+-]?\d+", row[1])  # Ruby's to_i
        by_id = [user for user in users if number and user.id == int(number[0])]
        by_sis = [user for user in users if row[2] and user.sis == row[2]]
        by_login = [user for user in users if row[3] and user.login == row[3]]
        by_name = [user for user in users if row[0] in (user.name, user.sortable)]
        user = next(iter(by_id or by_sis or by_login or by_name), None)
        given.append((user.id if user else 0, row[-1]))
    return given


def moodle_export(titles: str, users: tuple[User, ...] = USERS) -> str:
    """The grades of a course as Moodle writes them in the language of the titles, with the average below."""
    rows = [titles.split(", "), *([*u.name.split(" "), u.sis, "", u.mail, "1,50", "1764000000"] for u in users)]
    return written([*rows, ["Ø", "", "", "", "", "1,50", ""]])


def moodle_import(text: str, field: str, users: tuple[User, ...] = USERS) -> list[tuple[int, str]]:
    """The id of the user whom Moodle gives each row to and the last cell, mapping the first column to a field."""
    given, student = list[tuple[int, str]](), 0
    for key, *cells in list(csv.reader(io.StringIO(text)))[1:]:
        if key.strip():
            [student] = [user.id for user in users if getattr(user, field) == key.strip()]  # else it ends the import
        assert student
        given.append((student, cells[-1]))
    return given


def written(rows: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def import_list(classroom: Classroom, text: str, *, same: bool = False, **columns: str) -> Page:
    """Preview a class list, and add the new students; with `same`, also the numbers of known ones."""
    path = f"/courses/{classroom.course.id}/students"
    preview = Page(classroom.instructor.post(f"{path}/preview", data={"roster": text, **columns}).text)
    offered = [attrs for attrs, _ in preview.find("input", type="radio") if attrs["value"].partition("\n")[0].isdigit()]
    chosen = {attrs["name"]: attrs["value"] for attrs in offered} if same else {}
    new = next("".join(texts) for tag, _attrs, texts in preview.elements if tag == "textarea")
    classroom.instructor.post(path, data={"roster": new, **chosen})
    return preview


def grade(classroom: Classroom) -> dict[str, str]:
    """Give every student other points; the result is by name and number, or by name only."""
    students, activity = classroom.store.roster.students(classroom.course), classroom.open()
    for points, student in enumerate(students, start=1):
        path = f"/activities/{activity.id}/results/{student.id}/points"
        answer = classroom.instructor.post(path, data={"action": "change", "points": f"{points}", "reason": "test"})
        assert answer.status_code == 303
    return {f"{s.name} {s.roster_key or ''}".strip(): f"{points}" for points, s in enumerate(students, start=1)}


def exported(classroom: Classroom, name: str) -> str:
    return classroom.get(f"/courses/{classroom.course.id}/exports/gradebook-{name}.csv")


@pytest.mark.parametrize("columns", ["ID, SIS User ID, SIS Login ID", "ID, SIS Login ID"])
@pytest.mark.parametrize("number", ["", "1", "2"])
def test_canvas_finds_its_students_again(classroom: Classroom, columns: str, number: str) -> None:
    classroom.join("Kim Fox")
    chosen = {"first": "0", "last": "", "number": number} if number else {}
    import_list(classroom, canvas_export(columns), same=True, **chosen)
    students = classroom.store.roster.students(classroom.course)
    assert [student.name for student in students] == ["Ann Lee", "Ann Lee", "Jo Ek", "Kim Fox"]
    grade(classroom)
    by_id = {str(student.canvas_id): f"{points}" for points, student in enumerate(students, start=1)}
    assert canvas_import(exported(classroom, "canvas")) == [(int(user), points) for user, points in by_id.items()]
    assert set(by_id) == {str(user.id) for user in USERS}


def test_canvas_gives_nobody_the_points_of_a_namesake(classroom: Classroom) -> None:
    import_list(classroom, canvas_export("ID, SIS User ID, SIS Login ID"))
    classroom.join("Ann Lee")
    classroom.join("Jo Typed")
    points = grade(classroom)
    given = canvas_import(exported(classroom, "canvas"), (*USERS, User(7, "Jo Typed", "", "")))
    assert sorted(given) == sorted(
        [(101, points["Ann Lee 0012"]), (102, points["Ann Lee 0013"]), (12, points["Kim Fox 101"]),
         (104, points["Jo Ek 104"]), (7, points["Jo Typed"])]
    )  # fmt: skip
    assert Page(classroom.get(f"/courses/{classroom.course.id}/exports")).find("span", id="not-in-canvas")


@pytest.mark.parametrize(
    "titles",
    [
        "First name, Last name, ID number, Institution, Email address, Course total (Real), Last downloaded",
        "Vorname, Nachname, ID-Nummer, Institution, E-Mail-Adresse, Kurs gesamt (Punkte), Zuletzt geladen",
        "Prénom, Nom de famille, Numéro d’identification, Institution, Adresse de courriel, Total, Dernier",
        "Nombre, Apellido(s), Número de ID, Institución, Dirección de correo, Total del curso, Última descarga",
        "Имя, Фамилия, Индивидуальный номер, Учреждение, Адрес электронной почты, Итог, Последняя загрузка",
        "Förnamn, Efternamn, ID-nummer, Institution, E-postadress, Totalt, Senast hämtad",
        "Imię, Nazwisko, Numer ID, Instytucja, Adres e-mail, Suma, Pobrano",
    ],
)
def test_moodle_finds_its_students_again(classroom: Classroom, titles: str) -> None:
    preview = import_list(classroom, moodle_export(titles))
    assert "Ø" in preview.text("fieldset", class_="odd")
    students = classroom.store.roster.students(classroom.course)
    assert {(s.name, s.roster_key or "") for s in students} == {(user.name, user.sis) for user in USERS}
    points = grade(classroom)
    text = exported(classroom, "moodle")
    assert text.split(",")[0] == titles.split(", ")[2]
    assert [user for user, _ in moodle_import(text, "sis")] == [ANN.id, OTHER_ANN.id, KIM.id]
    ranks = [float(given) for _, given in moodle_import(text, "sis")]
    assert all(low < high for low, high in pairwise(ranks))
    assert list(points) == ["Ann Lee 0012", "Ann Lee 0013", "Jo Ek", "Kim Fox 101"]


def test_moodle_finds_its_students_by_the_address_if_the_teacher_says_so(classroom: Classroom) -> None:
    titles = "First name, Last name, ID number, Institution, Email address, Total, Last"
    import_list(classroom, moodle_export(titles), first="0", last="1", number="4")
    import_list(classroom, "Name,Number\nBo Berg,77")
    classroom.join("Ty Ped")
    grade(classroom)
    text = exported(classroom, "moodle")
    assert text.startswith("Email address,")
    assert sorted(user for user, _ in moodle_import(text, "mail")) == sorted(user.id for user in USERS)
    assert Page(classroom.get(f"/courses/{classroom.course.id}/exports")).find("span", id="not-in-moodle")
