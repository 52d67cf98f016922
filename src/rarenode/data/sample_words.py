"""The names in the samples: marine life, functions of genes, and topics, as nested mappings."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

TAXA: Mapping[str, Any] = MappingProxyType(
    {
        "Animals": {
            "Cnidarians": {
                "Stony corals": ["Acropora", "Porites", "Montipora", "Pocillopora", "Brain coral", "Mushroom coral"],
                "Soft corals": ["Sea fan", "Leather coral", "Dead man's fingers", "Sea pen"],
                "Sea anemones": ["Snakelocks anemone", "Plumose anemone", "Dahlia anemone"],
                "Jellyfish": ["Moon jellyfish", "Compass jellyfish"],
                "Hydroids": [],
            },
            "Echinoderms": {
                "Sea stars": ["Common sea star", "Crown-of-thorns", "Cushion star", "Sunflower star"],
                "Sea urchins": ["Purple urchin", "Edible urchin", "Heart urchin", "Long-spined urchin"],
                "Brittle stars": ["Common brittle star", "Basket star"],
                "Sea cucumbers": ["Cotton spinner", "Sea pig"],
                "Feather stars": [],
            },
            "Sponges": {
                "Encrusting sponges": ["Breadcrumb sponge", "Red encrusting sponge"],
                "Massive sponges": ["Barrel sponge", "Elephant ear sponge"],
                "Tube sponges": ["Yellow tube sponge", "Purple tube sponge"],
                "Boring sponges": [],
            },
            "Molluscs": {
                "Snails": ["Limpet", "Whelk", "Periwinkle", "Cone snail", "Abalone"],
                "Bivalves": ["Blue mussel", "Scallop", "Oyster", "Giant clam", "Razor clam"],
                "Cephalopods": ["Octopus", "Cuttlefish", "Squid"],
                "Sea slugs": ["Sea hare", "Spanish dancer"],
            },
            "Crustaceans": {
                "Crabs": ["Edible crab", "Hermit crab", "Spider crab", "Shore crab"],
                "Lobsters": ["European lobster", "Spiny lobster"],
                "Shrimps": ["Cleaner shrimp", "Pistol shrimp"],
                "Barnacles": [],
            },
            "Fishes": {
                "Sharks": ["Nurse shark", "Catshark"],
                "Rays": ["Thornback ray", "Manta ray"],
                "Bony fishes": [
                    "Clownfish",
                    "Parrotfish",
                    "Goby",
                    "Wrasse",
                    "Cod",
                    "Seahorse",
                    "Moray eel",
                    "Flounder",
                ],
            },
            "Sea squirts": ["Light-bulb sea squirt", "Star sea squirt"],
            "Worms": ["Fan worm", "Christmas tree worm", "Lugworm"],
        },
        "Algae and plants": {
            "Brown algae": {"Kelps": ["Sugar kelp", "Oarweed", "Giant kelp"], "Wracks": ["Bladder wrack", "Sargassum"]},
            "Red algae": ["Maerl", "Dulse", "Coral weed"],
            "Green algae": ["Sea lettuce", "Halimeda", "Velvet horn"],
            "Seagrasses": ["Eelgrass", "Neptune grass"],
        },
    }
)

FUNCTIONS: Mapping[str, Any] = MappingProxyType(
    {
        "biological_process": {
            "metabolism": {
                "carbohydrate metabolism": ["glycolysis", "starch breakdown", "gluconeogenesis"],
                "lipid metabolism": ["fatty acid synthesis", "fatty acid oxidation", "sterol synthesis"],
                "DNA metabolism": ["DNA replication", "DNA repair", "DNA recombination"],
                "protein metabolism": ["translation", "protein folding", "protein degradation"],
            },
            "signalling": {
                "hormone response": ["response to insulin", "response to auxin"],
                "immune response": ["inflammation", "antiviral defence"],
            },
            "transport": ["ion transport", "sugar transport", "vesicle transport"],
            "cell cycle": {"mitosis": ["spindle assembly", "cytokinesis"], "meiosis": []},
            "response to stress": ["response to heat", "response to drought", "response to cold"],
        },
        "molecular_function": {
            "catalysis": {
                "hydrolase": ["protease", "lipase", "nuclease", "phosphatase"],
                "transferase": ["kinase", "methyltransferase", "glycosyltransferase"],
                "oxidoreductase": ["dehydrogenase", "peroxidase"],
            },
            "binding": {
                "nucleic acid binding": ["DNA binding", "RNA binding"],
                "metal binding": ["zinc binding", "iron binding"],
            },
            "transporter": ["ion channel", "proton pump"],
        },
        "cellular_component": {
            "membrane": ["plasma membrane", "vacuolar membrane"],
            "organelle": {"nucleus": ["nucleolus", "nuclear pore"], "mitochondrion": [], "chloroplast": ["thylakoid"]},
            "cytoskeleton": ["microtubule", "actin filament"],
        },
    }
)

TOPICS: Mapping[str, Any] = MappingProxyType(
    {
        "Science": {
            "Biology": ["Genetics", "Ecology", "Neuroscience"],
            "Physics": ["Optics", "Particle physics", "Astronomy"],
            "Chemistry": ["Polymers", "Catalysis"],
        },
        "Sport": {
            "Ball games": ["Football", "Tennis", "Basketball", "Cricket"],
            "Water sports": ["Swimming", "Rowing", "Sailing"],
            "Athletics": ["Marathon", "High jump"],
        },
        "Economy": {
            "Finance": ["Banks", "Stock market", "Insurance"],
            "Energy": ["Solar power", "Wind power", "Oil and gas"],
            "Trade": ["Shipping", "Customs"],
        },
        "Culture": {
            "Music": ["Opera", "Jazz", "Folk song"],
            "Film": ["Documentary", "Comedy"],
            "Books": ["Poetry", "Crime novel"],
        },
    }
)
