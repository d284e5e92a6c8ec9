"""The words in the names of generated people and products.

No word needs escaping in JSON.
"""

from typing import NamedTuple


class Category(NamedTuple):
    """A category of products: its name, its lowest and highest price in cents, its products."""

    name: str
    low: int
    high: int
    products: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split(","))


FIRST_NAMES = _words("""
    Aaron Abigail Adam Adele Adrian Agnes Aisha Alan Albert Alejandro Alexander Alfred Alice Alicia
    Amanda Amara Amelia Amir Amy Ana Anders Andrea Andrew Angela Anika Anita Anna Anne Anthony
    Antonio Arthur Astrid Audrey Barbara Beatriz Benjamin Bernard Bianca Björn Brandon Brenda Brian
    Bruno Camila Carl Carla Carlos Carmen Caroline Catherine Cecilia Charles Charlotte Chen Chiara
    Chloé Christian Christine Clara Claire Claudia Colin Connor Daniel Daniela David Deborah Denise
    Dennis Diana Diego Dominic Dorothy Edith Edward Elena Eleanor Eli Elias Elif Elisa Elizabeth
    Ella Emil Emily Emma Eric Erika Esther Ethan Eva Evelyn Fatima Felix Fernando Fiona Florence
    Frances Francisco Frank Freya Gabriel George Gerald Gloria Grace Greta Hana Hannah Harold
    Harriet Hassan Heather Helen Henry Hugo Ian Ibrahim Ingrid Irene Isaac Isabel Ivan Jack Jacob
    James Jane Jasmine Javier Jennifer Jeremy Jessica Joan Johanna John Jonas Jorge José Joseph
    Joshua Julia Julian Jürgen Karen Katarina Keith Kenji Kevin Lara Laura Lauren Lena Leo Leonard
    Liam Lily Linda Lucas Lucia Magnus Marcus Margaret Maria Mariana Mark Martin Mary Mateo Matthew
    Maya Mei Mia Michael Miguel Mohammed Monica Naomi Natalie Nathan Nina Noah Nora Oliver Olivia
    Omar Oscar Patricia Paul Peter Philip Priya Rachel Rafael Rania Raúl Rebecca Robert Rosa Ruth
    Samuel Sandra Sara Sebastian Simon Sofia Stella Stephen Susan Teresa Theo Thomas Valentina
    Victor Victoria Vincent Walter William Yara Yasmin Yuki Zoë
""")

LAST_NAMES = _words("""
    Abbott Acosta Adams Adler Aguilar Ahmed Alexander Ali Allen Alvarez Andersen Anderson Andrews
    Archer Armstrong Arnold Atkins Austin Bailey Baker Baldwin Ball Banks Barker Barnes Barnett
    Barrett Bates Becker Bell Bennett Berg Berger Bergström Bianchi Bishop Black Blake Boyd Bradley
    Brandt Brennan Brooks Brown Bruno Bryant Burke Burns Burton Butler Byrne Campbell Carlson
    Carpenter Carr Carroll Carter Castillo Castro Chambers Chan Chapman Chavez Chen Christensen
    Clark Clarke Cohen Cole Coleman Collins Conti Cook Cooper Costa Cox Craig Crawford Cruz
    Cunningham Curtis Daniels Davidson Davies Davis Dawson Dean Delgado Diaz Dixon Doyle Duncan Dunn
    Duran Edwards Eklund Elliott Ellis Erickson Espinosa Evans Farrell Ferguson Fernández Ferrari
    Fischer Fisher Fleming Fletcher Flores Ford Foster Fowler Fox Francis Franklin Fraser Freeman
    Fuchs Fuller Gallagher Garcia Gardner Garza George Gibson Gilbert Gomez Gonzalez Goodwin Gordon
    Graham Grant Gray Green Greene Griffin Guerrero Gupta Gutierrez Haas Hall Hamilton Hansen Hardy
    Harper Harris Harrison Hart Harvey Hawkins Hayes Henderson Henry Hernandez Herrera Hicks Hill
    Hoffman Holmes Holt Horn Howard Howell Hudson Hughes Hunt Hunter Ibrahim Ingram Jackson Jacobs
    James Janssen Jenkins Jensen Jimenez Johansson Johnson Johnston Jones Jordan Joshi Kaplan Kaur
    Keller Kelly Kennedy Khan Kim King Klein Knight Koch Kowalski Kumar Lambert Lane Larsen Larson
    Lawson Lee Lehmann Leonard Lewis Li Lin Lindberg Little Lloyd Logan Long Lopez Lowe Lucas Lynch
    Maier Maldonado Marino Marsh Marshall Martin Martinez Mason Matthews May McCarthy McDonald
    McKenzie Medina Mehta Mendoza Meyer Miller Mills Mitchell Molina Montgomery Moore Morales Moran
    Moreno Morgan Morris Morrison Müller Murphy Murray Myers Nakamura Navarro Nelson Newman Nguyen
    Nielsen Novak Núñez O'Brien O'Connor O'Neill Oliver Olsen Olson Ortega Ortiz Osborne Owens
    Palmer Park Parker Patel Patterson Payne Pearson Pereira Perez Perry Peters Peterson Phillips
    Pierce Porter Powell Price Quinn Ramirez Ramos Reed Reyes Reynolds Rice Richards Richardson
    Riley Rivera Roberts Robinson Rodriguez Rogers Romano Rosen Ross Rossi Ruiz Russell Ryan Sanchez
    Sanders Santos Sato Schmidt Schneider Schubert Schwarz Scott Shah Sharma Shaw Silva Simmons
    Singh Smith Soto Spencer Stein Stevens Stewart Stone Sullivan Suzuki Takahashi Tanaka Taylor
    Thomas Thompson Torres Tran Tucker Turner Vargas Vasquez Vogel Wagner Walker Wallace Walsh Wang
    Ward Watson Weber Webster Wells West White Williams Wilson Winter Wolf Wood Wright Yamamoto
    Yilmaz Young Zhang Zimmermann
""")

MAIL_DOMAINS = ("example.com", "example.org", "example.net", "mail.example.com", "post.example.org")

ADJECTIVES = _words("""
    Adjustable Airy Bold Bright Calm Classic Clever Compact Cosy Crisp Durable Elegant Essential
    Everyday Fine Foldable Fresh Gentle Handmade Heavy-Duty Heritage Honest Light Lively Modern Neat
    Nordic Organic Plain Polished Portable Practical Premium Pure Quiet Quick Recycled Refined
    Reliable Robust Rustic Simple Sleek Slim Small Smart Smooth Soft Solid Sturdy Sunny Timeless
    Tiny Tough Trusty Urban Versatile Vintage Warm Wide
""")

MODIFIERS = _words("""
    Amber Ash Bamboo Beech Birch Brass Bronze Canvas Carbon Cedar Ceramic Charcoal Chrome Clay
    Cobalt Copper Coral Cork Cotton Denim Ebony Felt Flax Glass Granite Graphite Hemp Indigo Iron
    Ivory Jade Leather Linen Maple Marble Merino Mint Navy Oak Olive Onyx Pearl Pine Plum Porcelain
    Rattan Ruby Saffron Sage Sand Silk Silver Slate Steel Stone Teak Titanium Velvet Walnut Wool
""")

CATEGORIES = (
    Category("Books", 690, 4900, _phrases(
        "Atlas, Cookbook, Diary, Field Guide, Novel, Sketchbook, Songbook, Travel Guide")),
    Category("Clothing", 990, 18900, _phrases(
        "Belt, Cardigan, Coat, Gloves, Hat, Jacket, Jumper, Scarf, Shirt, Socks, Trousers")),
    Category("Electronics", 1490, 129900, _phrases(
        "Alarm Clock, Camera, Charger, Headphones, Keyboard, Monitor, Radio, Router, Speaker")),
    Category("Furniture", 3900, 149900, _phrases(
        "Armchair, Bench, Bookcase, Chair, Desk, Dresser, Shelf, Sofa, Stool, Table, Wardrobe")),
    Category("Garden", 590, 24900, _phrases(
        "Birdhouse, Hose, Lantern, Planter, Rake, Shears, Spade, Trowel, Watering Can")),
    Category("Groceries", 190, 2900, _phrases(
        "Biscuits, Chocolate, Coffee, Granola, Honey, Jam, Olive Oil, Pasta, Tea")),
    Category("Health", 390, 8900, _phrases(
        "Face Cream, Hand Soap, Lip Balm, Razor, Shampoo, Sponge, Toothbrush, Towel")),
    Category("Kitchen", 790, 29900, _phrases(
        "Bowl, Bread Knife, Carafe, Casserole, Cutting Board, Kettle, Mug, Pan, Plate, Teapot")),
    Category("Lighting", 1290, 39900, _phrases(
        "Candle Holder, Ceiling Lamp, Desk Lamp, Floor Lamp, Night Light, Pendant, Wall Lamp")),
    Category("Music", 890, 89900, _phrases(
        "Cajon, Flute, Guitar Stand, Harmonica, Metronome, Music Box, Tambourine, Ukulele")),
    Category("Office", 290, 14900, _phrases(
        "Clipboard, Fountain Pen, Letter Tray, Notebook, Pencil Case, Planner, Ruler, Stapler")),
    Category("Pets", 490, 12900, _phrases(
        "Basket, Collar, Feeding Bowl, Lead, Litter Tray, Rope Toy, Scratching Post")),
    Category("Sports", 890, 69900, _phrases(
        "Backpack, Ball, Bicycle Bell, Dumbbell, Helmet, Skipping Rope, Tent, Yoga Mat")),
    Category("Tools", 590, 34900, _phrases(
        "Axe, Drill, Hammer, Level, Pliers, Saw, Screwdriver, Tape Measure, Toolbox, Wrench")),
    Category("Toys", 690, 9900, _phrases(
        "Building Blocks, Doll, Jigsaw, Kite, Marbles, Puppet, Rocking Horse, Train Set, Yo-Yo")),
)  # fmt: skip
