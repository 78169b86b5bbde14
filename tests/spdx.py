"""What SPDX 2.3 requires of a document in JSON, as far as documents of releases use it."""
import re

IDENTIFIER = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
CREATOR = re.compile(r"(Person|Organization|Tool): \S.*")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
DIGEST_SIZES = {"SHA1": 40, "SHA256": 64}
RELATIONSHIPS = {"DESCRIBES", "CONTAINS", "STATIC_LINK", "DYNAMIC_LINK", "BUILD_DEPENDENCY_OF", "TEST_DEPENDENCY_OF", "BUILD_TOOL_OF"}
CATEGORIES = {"SECURITY", "PACKAGE-MANAGER", "PERSISTENT-ID", "OTHER"}
LICENCE = re.compile(r"NOASSERTION|NONE|[A-Za-z0-9.-]+\+?( WITH [A-Za-z0-9.-]+)?")
PACKAGE_URL = re.compile(r"pkg:[a-z]+/[A-Za-z0-9%._~-]+/[A-Za-z0-9%._~-]+@[A-Za-z0-9%._~-]+")


def errors(document):
    """What is wrong with the document, as a list of sentences."""
    found = []

    def expect(condition, sentence):
        if not condition:
            found.append(sentence)

    def text(owner, field, of):
        value = owner.get(field)
        expect(isinstance(value, str) and value != "", f"{of} has no {field}")
        return value if isinstance(value, str) else ""

    expect(document.get("spdxVersion") == "SPDX-2.3", "the document is not of SPDX-2.3")
    expect(document.get("dataLicense") == "CC0-1.0", "the document's data are not under CC0-1.0")
    expect(document.get("SPDXID") == "SPDXRef-DOCUMENT", "the document's SPDXID is not SPDXRef-DOCUMENT")
    text(document, "name", "the document")
    namespace = text(document, "documentNamespace", "the document")
    expect(re.fullmatch(r"[a-z]+://[^#\s]+", namespace), "documentNamespace is not a URI without '#'")
    creation = document.get("creationInfo", {})
    expect(TIME.fullmatch(text(creation, "created", "creationInfo")), "created is not a time in UTC")
    creators = creation.get("creators", [])
    expect(creators and all(CREATOR.fullmatch(creator) for creator in creators), "creators are not 'Organization: NAME'")

    identifiers = ["SPDXRef-DOCUMENT"]
    for package in document.get("packages", []):
        of = f"package {package.get('name')}"
        identifiers.append(text(package, "SPDXID", of))
        for field in "name", "versionInfo", "downloadLocation", "copyrightText":
            text(package, field, of)
        for field in "licenseDeclared", "licenseConcluded":
            expect(LICENCE.fullmatch(text(package, field, of)), f"{of}: {field} is no licence expression")
        expect(package.get("filesAnalyzed") is False, f"{of}: filesAnalyzed is not false, so it needs a verification code")
        for reference in package.get("externalRefs", []):
            expect(reference.get("referenceCategory") in CATEGORIES, f"{of}: unknown referenceCategory")
            expect(reference.get("referenceType") != "purl" or PACKAGE_URL.fullmatch(text(reference, "referenceLocator", of)),
                   f"{of}: referenceLocator is no package URL")
    for file in document.get("files", []):
        of = f"file {file.get('fileName')}"
        identifiers.append(text(file, "SPDXID", of))
        expect(text(file, "fileName", of).startswith("./"), f"{of}: fileName does not start with ./")
        expect(LICENCE.fullmatch(text(file, "licenseConcluded", of)), f"{of}: licenseConcluded is no licence expression")
        text(file, "copyrightText", of)
        digests = {each.get("algorithm"): each.get("checksumValue", "") for each in file.get("checksums", [])}
        expect("SHA1" in digests, f"{of} has no SHA1")
        for algorithm, digest in digests.items():
            expect(re.fullmatch(f"[0-9a-f]{{{DIGEST_SIZES.get(algorithm, 0)}}}", digest), f"{of}: {algorithm} is no such digest")
    for identifier in identifiers:
        expect(IDENTIFIER.fullmatch(identifier), f"'{identifier}' is no SPDXID")
    expect(len(set(identifiers)) == len(identifiers), "an SPDXID occurs twice")
    described = False
    for relation in document.get("relationships", []):
        kind, ends = relation.get("relationshipType"), [relation.get("spdxElementId"), relation.get("relatedSpdxElement")]
        expect(kind in RELATIONSHIPS, f"unknown relationshipType {kind}")
        expect(all(end in identifiers for end in ends), f"{kind} between {ends}: no such element")
        described = described or (kind == "DESCRIBES" and ends[0] == "SPDXRef-DOCUMENT")
    expect(described, "no relationship says what the document DESCRIBES")
    return found
