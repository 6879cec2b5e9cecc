"""Spellings of units and currencies.

A unit is only ever compared with spellings of itself: nothing is converted, so 21 cm is not 0.21 m. Symbols are read
with their case (``m`` is a metre, ``M`` is not), words without it. A spelling may stand for several units (``$`` for
every dollar); two spellings agree when they can mean the same unit.
"""

CURRENCIES = frozenset(
    """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
    CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR
    ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT
    MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
    SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND
    VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
    """.split()
)
"""ISO 4217 codes; upper case only, since ``all``, ``top`` and ``try`` are words."""

_DOLLARS = "USD AUD BBD BMD BND BSD BZD CAD FJD GYD HKD JMD KYD LRD NAD NZD SBD SGD SRD TTD TWD XCD"

_SYMBOLS = {
    "$": _DOLLARS + " ARS CLP COP CUP MXN UYU",
    "US$": "USD",
    "A$": "AUD",
    "AU$": "AUD",
    "C$": "CAD",
    "CA$": "CAD",
    "HK$": "HKD",
    "NZ$": "NZD",
    "S$": "SGD",
    "NT$": "TWD",
    "R$": "BRL",
    "MX$": "MXN",
    "\u20ac": "EUR",
    "\u00a3": "GBP EGP GIP SHP FKP",
    "\u00a5": "JPY CNY",
    "\u20b9": "INR",
    "\u20a9": "KRW",
    "\u20bd": "RUB",
    "\u20aa": "ILS",
    "\u20ba": "TRY",
    "\u20ab": "VND",
    "\u20b1": "PHP",
    "\u0e3f": "THB",
    "z\u0142": "PLN",
    "K\u010d": "CZK",
    "kr": "SEK NOK DKK ISK",
    "%": "percent",
    '"': "inch",
    "\u2033": "inch",
    "'": "foot",
    "\u2032": "foot",
    "mm": "millimetre",
    "cm": "centimetre",
    "m": "metre",
    "km": "kilometre",
    "in": "inch",
    "ft": "foot",
    "yd": "yard",
    "mi": "mile",
    "m2": "square_metre",
    "m\u00b2": "square_metre",
    "km2": "square_kilometre",
    "km\u00b2": "square_kilometre",
    "mg": "milligram",
    "g": "gram",
    "kg": "kilogram",
    "t": "tonne",
    "oz": "ounce",
    "lb": "pound",
    "lbs": "pound",
    "ml": "millilitre",
    "mL": "millilitre",
    "l": "litre",
    "L": "litre",
    "gal": "gallon",
    "ms": "millisecond",
    "s": "second",
    "min": "minute",
    "h": "hour",
    "d": "day",
    "\u00b0": "degree",
    "\u00b0C": "celsius",
    "\u2103": "celsius",
    "\u00b0F": "fahrenheit",
    "\u2109": "fahrenheit",
    "K": "kelvin",
    "km/h": "kilometre_per_hour",
    "mph": "mile_per_hour",
    "m/s": "metre_per_second",
    "B": "byte",
    "kB": "kilobyte",
    "KB": "kilobyte",
    "MB": "megabyte",
    "GB": "gigabyte",
    "TB": "terabyte",
    "KiB": "kibibyte",
    "MiB": "mebibyte",
    "GiB": "gibibyte",
    "W": "watt",
    "kW": "kilowatt",
    "kWh": "kilowatt_hour",
    "Hz": "hertz",
}

_WORDS = {
    "usd": "USD",
    "eur": "EUR",
    "gbp": "GBP",
    "dollar dollars": _DOLLARS,
    "us_dollar us_dollars": "USD",
    "euro euros": "EUR",
    "yen": "JPY",
    "rupee rupees": "INR",
    "pound pounds": "pound GBP",
    "percent per_cent pct": "percent",
    "inch inches": "inch",
    "foot feet": "foot",
    "yard yards": "yard",
    "mile miles": "mile",
    "millimetre millimetres millimeter millimeters": "millimetre",
    "centimetre centimetres centimeter centimeters": "centimetre",
    "metre metres meter meters": "metre",
    "kilometre kilometres kilometer kilometers": "kilometre",
    "square_metre square_metres square_meter square_meters sq_m sqm": "square_metre",
    "square_kilometre square_kilometres square_kilometer square_kilometers sq_km": "square_kilometre",
    "milligram milligrams": "milligram",
    "gram grams": "gram",
    "kilogram kilograms kilo kilos": "kilogram",
    "tonne tonnes": "tonne",
    "ounce ounces": "ounce",
    "millilitre millilitres milliliter milliliters": "millilitre",
    "litre litres liter liters": "litre",
    "gallon gallons": "gallon",
    "millisecond milliseconds": "millisecond",
    "second seconds sec secs": "second",
    "minute minutes mins": "minute",
    "hour hours hr hrs": "hour",
    "day days": "day",
    "week weeks": "week",
    "month months": "month",
    "year years yr yrs": "year",
    "degree degrees deg": "degree",
    "celsius degree_celsius degrees_celsius": "celsius",
    "fahrenheit degree_fahrenheit degrees_fahrenheit": "fahrenheit",
    "kelvin kelvins": "kelvin",
    "kmh kph kilometres_per_hour kilometers_per_hour": "kilometre_per_hour",
    "miles_per_hour": "mile_per_hour",
    "metres_per_second meters_per_second": "metre_per_second",
    "byte bytes": "byte",
    "kilobyte kilobytes": "kilobyte",
    "megabyte megabytes": "megabyte",
    "gigabyte gigabytes": "gigabyte",
    "terabyte terabytes": "terabyte",
    "watt watts": "watt",
    "kilowatt kilowatts": "kilowatt",
    "kilowatt_hour kilowatt_hours": "kilowatt_hour",
}

_BY_SYMBOL = {symbol: frozenset(units.split()) for symbol, units in _SYMBOLS.items()}
_BY_WORD = {
    word.replace("_", " "): frozenset(units.split()) for words, units in _WORDS.items() for word in words.split()
}


def meanings(spelling: str) -> frozenset[str]:
    """The units a spelling can stand for; one that isn't in the tables stands for itself only.

    >>> sorted(meanings("inches")), sorted(meanings("USD")), sorted(meanings("widgets"))
    (['inch'], ['USD'], ['widgets'])
    """
    name = " ".join(spelling.split())
    if name in CURRENCIES:
        return frozenset({name})
    return _BY_SYMBOL.get(name) or _BY_WORD.get(name.casefold()) or frozenset({name})


def agree(first: str, second: str) -> bool:
    """Whether two spellings can mean the same unit."""
    return not meanings(first).isdisjoint(meanings(second))


def is_currency(spelling: str) -> bool:
    """Whether a spelling can mean money."""
    return not meanings(spelling).isdisjoint(CURRENCIES)
