"""Names, goods and phrases of the retailer: the vocabulary of its fixture and of generated tasks.

The lists are part of the fixture's content: a change in one moves the fixture's digest.
"""

from typing import NamedTuple

FIRST_NAMES = (
    "Ada", "Adrian", "Aisha", "Amir", "Anika", "Arthur", "Beatriz", "Bruno", "Carmen", "Cedric", "Chiara", "Dalia",
    "Daniel", "Diego", "Edith", "Elif", "Emil", "Esther", "Farid", "Fiona", "Gloria", "Hana", "Henrik", "Ines",
    "Isaac", "Ivana", "Jamal", "Jolanda", "José", "Jürgen", "Kamal", "Kirsten", "Laila", "Leon", "Lucia", "Magnus",
    "Mei", "Milan", "Nadia", "Nils", "Nina", "Olga", "Oscar", "Paula", "Priya", "Rafael", "Renée", "Ruth",
    "Samir", "Selma", "Sofia", "Tariq", "Thea", "Tomas", "Uma", "Viktor", "Wanda", "Yara", "Yusuf", "Zoë",
)  # fmt: skip

LAST_NAMES = (
    "Abbott", "Adeyemi", "Almeida", "Andersson", "Bauer", "Becker", "Bianchi", "Carvalho", "Castillo", "Chen", "Dvorak",
    "Eriksen", "Farouk", "Fischer", "Fontaine", "Garcia", "Greco", "Haddad", "Hansen", "Hoffmann", "Ibrahim", "Ito",
    "Jansen", "Kaplan", "Keller", "Kim", "Kowalski", "Laurent", "Lindqvist", "Lopez", "Marino", "Mbeki", "Mendes",
    "Moreau", "Müller", "Nakamura", "Novak", "Nuñez", "Okafor", "Olsen", "Ortega", "Park", "Petrov", "Quinn", "Rahman",
    "Ricci", "Rossi", "Sato", "Schneider", "Silva", "Singh", "Tanaka", "Taylor", "Torres", "Vargas", "Vogel", "Walsh",
    "Weber", "Yilmaz", "Zhang",
)  # fmt: skip

MAIL_DOMAINS = ("post.example", "letters.example", "inbox.example")

CARRIERS = ("Swift Parcel", "Harbour Freight Lines", "Blue Van")


class Product(NamedTuple):
    """Something the retailer sells."""

    sku: str
    name: str
    category: str
    cents: int
    """Price of one piece in hundredths of a US dollar."""


PRODUCTS = (
    Product("BK-101", "Bird guide", "books", 1850),
    Product("BK-102", "Cookbook", "books", 2790),
    Product("BK-103", "Road atlas", "books", 2240),
    Product("BK-104", "Chess primer", "books", 1320),
    Product("CL-201", "Rain jacket", "clothing", 7490),
    Product("CL-202", "Wool scarf", "clothing", 2950),
    Product("CL-203", "Leather gloves", "clothing", 4390),
    Product("CL-204", "Linen shirt", "clothing", 3860),
    Product("CL-205", "Hiking boots", "clothing", 11850),
    Product("EL-301", "Desk speaker", "electronics", 5930),
    Product("EL-302", "Noise filter headphones", "electronics", 12990),
    Product("EL-303", "Pocket radio", "electronics", 3470),
    Product("EL-304", "Film scanner", "electronics", 16450),
    Product("EL-305", "Tablet", "electronics", 31900),
    Product("EL-306", "Camera", "electronics", 54800),
    Product("EL-307", "Wireless keyboard", "electronics", 4710),
    Product("EL-308", "Projector", "electronics", 78650),
    Product("GA-401", "Garden hose", "garden", 2680),
    Product("GA-402", "Pruning shears", "garden", 3150),
    Product("GA-403", "Planter set", "garden", 4520),
    Product("GA-404", "Lawn mower", "garden", 28900),
    Product("HO-501", "Floor lamp", "home", 6780),
    Product("HO-502", "Wall clock", "home", 3340),
    Product("HO-503", "Bed linen", "home", 5460),
    Product("HO-504", "Oak stool", "home", 8270),
    Product("HO-505", "Wool rug", "home", 23750),
    Product("KI-601", "Steel kettle", "kitchen", 3990),
    Product("KI-602", "Cast iron pan", "kitchen", 4680),
    Product("KI-603", "Knife block", "kitchen", 8940),
    Product("KI-604", "Coffee grinder", "kitchen", 6210),
    Product("KI-605", "Baking tins", "kitchen", 2470),
    Product("SP-701", "Yoga mat", "sports", 2860),
    Product("SP-702", "Tennis racket", "sports", 9730),
    Product("SP-703", "Water bottle", "sports", 1640),
    Product("SP-704", "Tent", "sports", 18900),
    Product("SP-705", "Rowing machine", "sports", 64200),
    Product("TO-801", "Wooden train", "toys", 3590),
    Product("TO-802", "Puzzle of 1000 pieces", "toys", 1980),
    Product("TO-803", "Kite", "toys", 2310),
    Product("TO-804", "Model crane", "toys", 5140),
)

NOTES = (
    "Caller was friendly and had the order number at hand.",
    "Parcel reached the depot; checked the photo of the label.",
    "Customer asked how long the bank takes. Said up to five working days.",
    "Second call about this order. Nothing else to do.",
    "Spoke slowly and repeated the figures to be sure.",
    "Customer will keep the box for the courier.",
)

SUBJECTS = (
    "Question about an order",
    "Call about a delivery",
    "Customer wants to talk about a purchase",
    "Request on the phone",
)
