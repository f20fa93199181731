"""What the PFT API holds, as arithmetic: the server answers by it, pages and totals alike."""

DOMAINS: dict[str, tuple[int, int]] = {
    "assessments": (2, 4),
    "conditions": (1, 3),
    "medications": (2, 3),
    "vital_signs": (1, 1),
    "demographics": (1, 1),
}
"""Least and most pages of a patient's records."""

RECORDS_PER_PAGE = 8
MDS_MIN, MDS_SPREAD = 15, 16
"""Every assessment has one MDS detail; a patient has 15 to 30 of them."""


def mixed(number: int) -> int:
    """Numbers that lie close together, spread out: the same in every process and language."""
    number = (number ^ (number >> 16)) * 0x45D9F3B & 0xFFFFFFFF
    number = (number ^ (number >> 16)) * 0x45D9F3B & 0xFFFFFFFF
    return number ^ (number >> 16)


def page_count(domain: str, patient: int) -> int:
    least, most = DOMAINS[domain]
    return least + mixed(patient + len(domain)) % (most - least + 1)


def record_count(domain: str, patient: int) -> int:
    if domain == "assessments":
        return MDS_MIN + mixed(patient) % MDS_SPREAD
    if domain == "demographics":
        return 1
    return RECORDS_PER_PAGE * page_count(domain, patient)


def patients_of(facility: int, count: int) -> range:
    return range(facility * 100_000 + 1, facility * 100_000 + count + 1)


def mds_count(facilities: int, patients: int) -> int:
    return sum(
        record_count("assessments", patient)
        for facility in range(1, facilities + 1)
        for patient in patients_of(facility, patients)
    )


def request_count(facilities: int, patients: int) -> int:
    """Requests of a complete harvest: every page of every domain, and every MDS detail."""
    pages = sum(
        page_count(domain, patient)
        for domain in DOMAINS
        for facility in range(1, facilities + 1)
        for patient in patients_of(facility, patients)
    )
    return pages + mds_count(facilities, patients)


def totals(facilities: int, patients: int) -> dict[str, list[dict[str, object]]]:
    """What a complete harvest holds, row by row as a database counts it."""
    harvested = {facility: patients_of(facility, patients) for facility in range(1, facilities + 1)}
    records: list[dict[str, object]] = [
        {
            "facility_id": facility,
            "data_type": domain,
            "patients": patients,
            "pages": sum(page_count(domain, patient) for patient in ids),
            "records": sum(record_count(domain, patient) for patient in ids),
        }
        for facility, ids in harvested.items()
        for domain in sorted(DOMAINS)
    ]
    details: list[dict[str, object]] = [
        {
            "facility_id": facility,
            "details": sum(record_count("assessments", patient) for patient in ids),
        }
        for facility, ids in harvested.items()
    ]
    return {"records": records, "details": details}
