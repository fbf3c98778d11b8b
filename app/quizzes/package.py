"""Zip files with a manifest, as learning platforms exchange them: IMS Content Packaging."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

_NAMESPACE = "http://www.imsglobal.org/xsd/imscp_v1p1"
_WRITTEN_AT = (2026, 1, 1, 0, 0, 0)  # the same input gives the same file


@dataclass(frozen=True)
class Resource:
    """A file of a package; `needs` are the identifiers of others that it shows."""

    identifier: str
    kind: str
    path: str
    data: bytes
    needs: tuple[str, ...] = ()


def package(resources: Sequence[Resource], schema: str, version: str) -> bytes:
    """The zip file of these files and their manifest."""
    manifest = _manifest(resources, schema, version)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in (("imsmanifest.xml", manifest), *((each.path, each.data) for each in resources)):
            archive.writestr(zipfile.ZipInfo(path, _WRITTEN_AT), data, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _manifest(resources: Iterable[Resource], schema: str, version: str) -> bytes:
    root = ET.Element("manifest", xmlns=_NAMESPACE, identifier="attention-shapes")
    metadata = ET.SubElement(root, "metadata")
    ET.SubElement(metadata, "schema").text = schema
    ET.SubElement(metadata, "schemaversion").text = version
    ET.SubElement(root, "organizations")
    listed = ET.SubElement(root, "resources")
    for each in resources:
        resource = ET.SubElement(listed, "resource", identifier=each.identifier, type=each.kind, href=each.path)
        ET.SubElement(resource, "file", href=each.path)
        for needed in each.needs:
            ET.SubElement(resource, "dependency", identifierref=needed)
    return to_bytes(root)


def to_bytes(root: ET.Element) -> bytes:
    """An element as an XML file."""
    ET.indent(root)
    data: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return data
