"""The phrasebook against pairs written by hand, and against rules of French written anew here."""

from collections import Counter

import pytest
import torch

from course_lib import data
from course_lib.data.phrasebook.alignment import aligned_phrase
from course_lib.data.phrasebook.grammar import Clause, NounPhrase
from course_lib.data.phrasebook.lexicon import ADJECTIVES, INTRANSITIVE, NOUNS, TRANSITIVE
from tests.helpers.annotations import unchecked

VERBS = {verb.name: verb for verb in (*TRANSITIVE, *INTRANSITIVE)}
PLURALS = {noun.english[1]: noun for noun in NOUNS.values()}

# Written out, so that a word that changes its gender in the library is noticed here.
MASCULINE = {
    "homme": "hommes", "enfant": "enfants", "garçon": "garçons", "ami": "amis", "oncle": "oncles",
    "chat": "chats", "chien": "chiens", "cheval": "chevaux", "oiseau": "oiseaux", "renard": "renards",
    "hérisson": "hérissons", "gâteau": "gâteaux", "œuf": "œufs", "lait": None, "thé": None, "café": None,
    "livre": "livres", "journal": "journaux", "jardin": "jardins", "château": "châteaux", "arbre": "arbres",
    "chapeau": "chapeaux", "bateau": "bateaux",
}  # fmt: skip
FEMININE = {
    "femme": "femmes", "fille": "filles", "sœur": "sœurs", "vache": "vaches", "souris": "souris", "oie": "oies",
    "pomme": "pommes", "orange": "oranges", "poire": "poires", "tomate": "tomates", "eau": None,
    "lettre": "lettres", "histoire": "histoires", "maison": "maisons", "école": "écoles", "fleur": "fleurs",
    "table": "tables", "chaise": "chaises", "porte": "portes", "boîte": "boîtes", "clé": "clés",
    "voiture": "voitures",
}  # fmt: skip
#: (masculine, feminine, both plural) of the adjectives; "before" is where French puts them first.
AGREE = {
    "before": """grand grande grands grandes; petit petite petits petites; gros grosse gros grosses;
        jeune jeune jeunes jeunes; vieux vieille vieux vieilles; beau belle beaux belles;
        nouveau nouvelle nouveaux nouvelles; bon bonne bons bonnes""",
    "behind": """noir noire noirs noires; blanc blanche blancs blanches; gris grise gris grises;
        rouge rouge rouges rouges; vert verte verts vertes; heureux heureuse heureux heureuses;
        triste triste tristes tristes; fatigué fatiguée fatigués fatiguées; sucré sucrée sucrés sucrées;
        chaud chaude chauds chaudes; froid froide froids froides; cher chère chers chères;
        vide vide vides vides""",
}
#: je, vous, il, nous, ils.
CONJUGATED = """
    vois voyez voit voyons voient; aime aimez aime aimons aiment; trouve trouvez trouve trouvons trouvent;
    regarde regardez regarde regardons regardent; cherche cherchez cherche cherchons cherchent;
    attends attendez attend attendons attendent; entends entendez entend entendons entendent;
    appelle appelez appelle appelons appellent; lave lavez lave lavons lavent;
    dessine dessinez dessine dessinons dessinent; mange mangez mange mangeons mangent;
    bois buvez boit buvons boivent; lis lisez lit lisons lisent; écris écrivez écrit écrivons écrivent;
    commence commencez commence commençons commencent; ouvre ouvrez ouvre ouvrons ouvrent;
    achète achetez achète achetons achètent; dors dormez dort dormons dorment;
    travaille travaillez travaille travaillons travaillent; chante chantez chante chantons chantent
"""


def is_vowel(word):
    """The sound of a vowel: the test's own list of the words that start with an h."""
    return word in ("homme", "hommes", "histoire", "histoires") or word[0] in "aeiouéèêœ"


def noun_phrase(text):
    """Read "the small black cats" with the library's words."""
    determiner, *adjectives, noun = text.split()
    determiner = {"an": "a", "some": "a", "any": "a", "these": "this"}.get(determiner, determiner)
    found = PLURALS.get(noun) or NOUNS[noun]
    adjectives = tuple(ADJECTIVES[one] for one in adjectives)
    return NounPhrase(determiner, found, noun in PLURALS, adjectives)


def says(subject, verb, complement=None, form="statement", adverb="", setting=None):
    """Write a clause given by words."""
    if " " in subject:
        subject = noun_phrase(subject)
    if verb == "be":
        complement = ADJECTIVES[complement]
    elif complement and " " in complement:
        complement = noun_phrase(complement)
    if setting:
        setting = (setting[0], noun_phrase(setting[1]))
    return aligned_phrase(Clause(subject, VERBS.get(verb), complement, form, adverb, setting))


NOT, ASK = "negation", "question"

#: What is said; English; French; the places in the French sentence of each English word, "?" before
#: those that one may link and need not.
BY_HAND = [
    (("the black cat", "sleep"), "the black cat sleeps .", "le chat noir dort .", "0 2 1 3 4"),
    (("the old man", "read", "a letter"), "the old man reads a letter .", "le vieil homme lit une lettre .", "0 1 2 3 4 5 6"),
    (("i", "like", "my school"), "i like my school .", "j' aime mon école .", "0 1 2 3 4"),
    (("i", "like", "him"), "i like him .", "je l' aime .", "0 2 1 3"),
    (("he", "eat", "the cake", NOT), "he does not eat the cake .", "il ne mange pas le gâteau .", "0 ?1,3 1,3 2 4 5 6"),
    (("he", "eat", "a cake", NOT), "he does not eat a cake .", "il ne mange pas de gâteau .", "0 ?1,3 1,3 2 4 5 6"),
    (("i", "see", "any birds", NOT), "i do not see any birds .", "je ne vois pas d' oiseaux .", "0 ?1,3 1,3 2 4 5 6"),
    (("we", "eat", "two eggs"), "we eat two eggs .", "nous mangeons deux œufs .", "0 1 2 3 4"),
    (("we", "begin", "the story"), "we begin the story .", "nous commençons l' histoire .", "0 1 2 3 4"),
    (("she", "see", "him", NOT), "she does not see him .", "elle ne le voit pas .", "0 ?1,4 1,4 3 2 5"),
    (("you", "wait for", "her", NOT), "you do not wait for her .", "vous ne l' attendez pas .", "0 ?1,4 1,4 3 3 2 5"),
    (("the cat", "see", "the dog", ASK), "does the cat see the dog ?", "est-ce que le chat voit le chien ?", "0,1 2 3 4 5 6 7"),
    (("he", "open", "the door", ASK), "does he open the door ?", "est-ce qu' il ouvre la porte ?", "0,1 2 3 4 5 6"),
    (("you", "see", "any small horses", ASK), "do you see any small horses ?", "est-ce que vous voyez de petits chevaux ?", "0,1 2 3 4 5 6 7"),
    (("some small cats", "sleep"), "some small cats sleep .", "de petits chats dorment .", "0 1 2 3 4"),
    (("some black cats", "sleep"), "some black cats sleep .", "des chats noirs dorment .", "0 2 1 3 4"),
    (("the houses", "be", "big", NOT), "the houses are not big .", "les maisons ne sont pas grandes .", "0 1 3 2,4 5 6"),
    (("the cat", "be", "black", ASK), "is the cat black ?", "est-ce que le chat est noir ?", "4?0,1 2 3 5 6"),
    (("they", "be", "happy", ASK, "often"), "are they often happy ?", "est-ce qu' ils sont souvent heureux ?", "3?0,1 2 4 5 6"),
    (("she", "be", "beautiful"), "she is beautiful .", "elle est belle .", "0 1 2 3"),
    (("he", "be", "sad", NOT, "always"), "he is not always sad .", "il n' est pas toujours triste .", "0 2 1,3 4 5 6"),
    (("he", "eat", "the cake", "statement", "often"), "he often eats the cake .", "il mange souvent le gâteau .", "0 2 1 3 4 5"),
    (("he", "eat", "the cake", NOT, "often"), "he does not often eat the cake .", "il ne mange pas souvent le gâteau .", "0 ?1,3 1,3 4 2 5 6 7"),
    (("she", "look at", "this bird"), "she looks at this bird .", "elle regarde cet oiseau .", "0 1 1 2 3 4"),
    (("she", "look for", "these keys"), "she looks for these keys .", "elle cherche ces clés .", "0 1 1 2 3 4"),
    (("the hedgehog", "find", "this beautiful tree"), "the hedgehog finds this beautiful tree .", "le hérisson trouve ce bel arbre .", "0 1 2 3 4 5 6"),
    (("an old fox", "see", "a new boat"), "an old fox sees a new boat .", "un vieux renard voit un nouveau bateau .", "0 1 2 3 4 5 6 7"),
    (("the new friend", "buy", "an old car"), "the new friend buys an old car .", "le nouvel ami achète une vieille voiture .", "0 1 2 3 4 5 6 7"),
    (("three old friends", "drink", "the black coffee"), "three old friends drink the black coffee .", "trois vieux amis boivent le café noir .", "0 1 2 3 4 6 5 7"),
    (("my sister", "wait for", "my uncles", "statement", "", ("in front of", "the school")), "my sister waits for my uncles in front of the school .", "ma sœur attend mes oncles devant l' école .", "0 1 2 2 3 4 5 5 5 6 7 8"),
    (("the boy", "draw", "a big white horse", "statement", "", ("in", "the garden")), "the boy draws a big white horse in the garden .", "le garçon dessine un grand cheval blanc dans le jardin .", "0 1 2 3 4 6 5 7 8 9 10"),
    (("the mice", "sleep", None, "statement", "", ("under", "the red table")), "the mice sleep under the red table .", "les souris dorment sous la table rouge .", "0 1 2 3 4 6 5 7"),
    (("they", "work", None, NOT, "", ("with", "my friend")), "they do not work with my friend .", "ils ne travaillent pas avec mon ami .", "0 ?1,3 1,3 2 4 5 6 7"),
    (("the goose", "hear", "them", "statement", "", ("behind", "a tree")), "the goose hears them behind a tree .", "l' oie les entend derrière un arbre .", "0 1 3 2 4 5 6 7"),
    (("i", "write", "a story", NOT), "i do not write a story .", "je n' écris pas d' histoire .", "0 ?1,3 1,3 2 4 5 6"),
    (("i", "call", "the child"), "i call the child .", "j' appelle l' enfant .", "0 1 2 3 4"),
    (("we", "wash", "her"), "we wash her .", "nous la lavons .", "0 2 1 3"),
    (("the horses", "be", "expensive"), "the horses are expensive .", "les chevaux sont chers .", "0 1 2 3 4"),
    (("this sweet orange", "be", "good"), "this sweet orange is good .", "cette orange sucrée est bonne .", "0 2 1 3 4 5"),
    (("the happy women", "sing"), "the happy women sing .", "les femmes heureuses chantent .", "0 2 1 3 4"),
    (("you", "wash", "the white cows"), "you wash the white cows .", "vous lavez les vaches blanches .", "0 1 2 4 3 5"),
    (("some beautiful trees", "be", "green", ASK), "are some beautiful trees green ?", "est-ce que de beaux arbres sont verts ?", "5?0,1 2 3 4 6 7"),
    (("some dogs", "sleep", None, NOT), "some dogs do not sleep .", "des chiens ne dorment pas .", "0 1 ?2,4 2,4 3 5"),
    (("he", "sleep", None, NOT, "", ("under", "a tree")), "he does not sleep under a tree .", "il ne dort pas sous un arbre .", "0 ?1,3 1,3 2 4 5 6 7"),
    (("i", "read", "the old story"), "i read the old story .", "je lis la vieille histoire .", "0 1 2 3 4 5"),
    (("a child", "sing", None, ASK), "does a child sing ?", "est-ce qu' un enfant chante ?", "0,1 2 3 4 5"),
    (("he", "read", "a new book", NOT), "he does not read a new book .", "il ne lit pas de nouveau livre .", "0 ?1,3 1,3 2 4 5 6 7"),
]  # fmt: skip


def links(text):
    """(sure, possible) of "0 ?1,3 …"."""
    sure, may = set(), set()
    for place, one in enumerate(text.split()):
        certain, _, doubtful = one.partition("?")
        sure |= {(place, int(other)) for other in certain.split(",") if other}
        may |= {(place, int(other)) for other in doubtful.split(",") if other}
    return sure, sure | may


@pytest.fixture(scope="module")
def train():
    with unchecked():
        return data.phrases(20_000)


@pytest.fixture(scope="module")
def held_out():
    with unchecked():
        return data.phrases(5_000, split="held out", seed=3)


@pytest.fixture(scope="module")
def both(train, held_out):
    return train[:6000] + held_out


# --- pairs written by hand -------------------------------------------------------------------


@pytest.mark.verifies(
    "course_lib.data.Phrase", against="47 sentences translated and linked by hand"
)
@pytest.mark.parametrize(("said", "english", "french", "linked"), BY_HAND)
def test_a_sentence_is_written_and_linked_as_by_hand(ledger, said, english, french, linked):
    phrase = says(*said)
    assert isinstance(phrase, data.Phrase)
    assert str(phrase) == f"{english} → {french}"
    assert (set(phrase.sure), set(phrase.possible)) == links(linked)
    ledger.holds()


# --- rules of French -------------------------------------------------------------------------

NEVER_BEFORE_VOWEL = set("le la de je ne que ce ma vieux beau nouveau".split())
ONLY_BEFORE_VOWEL = set("l' d' j' n' qu' cet vieil bel nouvel".split())


def test_genders_and_forms_are_those_typed_here():
    for feminine, table in ((False, MASCULINE), (True, FEMININE)):
        found = dict(noun.french for noun in NOUNS.values() if noun.feminine == feminine)
        assert found == {one: many or "-" for one, many in table.items()}
    for place, lines in AGREE.items():
        found = [one for one in ADJECTIVES.values() if one.precedes_noun == (place == "before")]
        forms = {
            (one.masculine[0], one.feminine[0], one.masculine[1], one.feminine[1]) for one in found
        }
        assert forms == {tuple(line.split()) for line in lines.split(";")}
    changed = {one.before_vowel for one in ADJECTIVES.values()}
    assert changed - {one.masculine[0] for one in ADJECTIVES.values()} == {"vieil", "bel", "nouvel"}
    assert {verb.french for verb in VERBS.values()} == {
        tuple(line.split()) for line in CONJUGATED.split(";")
    }


@pytest.mark.verifies(
    "course_lib.data.phrases", against="rules of French, with genders and forms typed in the test"
)
def test_words_have_the_form_that_the_next_sound_asks_for(ledger, both):
    seen, plural = set(), {*MASCULINE.values(), *FEMININE.values()}
    for phrase in both:
        for word, after in zip(phrase.french, phrase.french[1:], strict=False):
            if word in NEVER_BEFORE_VOWEL and is_vowel(after):
                # old friends: the plural looks like the singular
                assert word == "vieux" and after in plural, str(phrase)
            if word in ONLY_BEFORE_VOWEL:
                assert is_vowel(after), str(phrase)
                seen.add(word)
            if word in ("mon", "ma") and (after in FEMININE or word == "ma"):
                assert (word == "mon") == is_vowel(after), str(phrase)
    assert seen == ONLY_BEFORE_VOWEL
    ledger.holds()


# --- English ---------------------------------------------------------------------------------


ENGLISH_ADJECTIVES = set(
    "big small fat young old beautiful new good black white grey red green happy sad tired sweet hot cold "
    "expensive empty".split()
)
ENGLISH_VERBS = set(
    "look wait see like find hear call wash draw eat drink read write begin open buy sleep work sing".split()
)
ENGLISH_NOUNS = {noun.name for noun in NOUNS.values()}
ONE_OF = {
    "men": "man", "women": "woman", "children": "child", "mice": "mouse", "geese": "goose", "foxes": "fox",
    "boxes": "box", "tomatoes": "tomato", "stories": "story",
}  # fmt: skip


def singular(word):
    return ONE_OF.get(word, word.removesuffix("s"))


def base_of(word):
    return {"washes": "wash"}.get(word, word.removesuffix("s"))


# --- sampling and its splits  -----------------------------------------------------------------


def pairs_read(english):
    """Read the (adjective, noun) and (verb, object) back from the English words alone."""
    pairs = set()
    places = [n for n, word in enumerate(english) if singular(word) in ENGLISH_NOUNS]
    for place in places:
        before = place - 1
        while english[before] in ENGLISH_ADJECTIVES:
            pairs.add((english[before], singular(english[place])))
            before -= 1
    if {"is", "are"} & set(english) and places:
        pairs.add((english[-2], singular(english[places[0]])))
    for place, word in enumerate(english):
        base = base_of(word)
        if base in ENGLISH_VERBS:
            particle = base in ("look", "wait")
            name = f"{base} {english[place + 1]}" if particle else base
            rest = english[place + 1 + particle : -1]
            until = [n for n, word in enumerate(rest) if word in "in under behind with".split()]
            found = map(singular, rest[: (until or [None])[0]])
            pairs |= {(name, noun) for noun in found if noun in ENGLISH_NOUNS}
    return pairs


@pytest.mark.verifies(
    "course_lib.data.held_out_pairs", against="pairs read back from the English words by the test"
)
def test_a_pair_held_out_is_in_no_training_sentence(ledger, train, held_out):
    pairs, met, meaning = data.held_out_pairs(), {}, {}
    for split, sentences in (("train", train), ("held out", held_out)):
        met[split] = set()
        for phrase in sentences:
            read = pairs_read(phrase.english)
            assert read == phrase.pairs, str(phrase)
            assert bool(read & pairs) == (split == "held out"), str(phrase)
            assert meaning.setdefault(phrase.english, phrase) == phrase
            met[split] |= read
    assert met["held out"] >= pairs
    assert len(pairs) / len(pairs | met["train"]) == pytest.approx(0.1, abs=0.01)
    of_adjectives = {pair for pair in pairs if pair[0] in ENGLISH_ADJECTIVES}
    assert 25 < len(of_adjectives) < len(pairs) - 25
    ledger.holds()


@pytest.mark.verifies(
    "course_lib.data.phrasebook_vocabularies",
    against="Python's `set` of the words of 20,000 sentences",
)
def test_every_form_occurs_in_training(ledger, train, held_out):
    vocabularies = data.phrasebook_vocabularies()
    for vocabulary, language in zip(vocabularies, ("english", "french"), strict=True):
        counted = Counter(word for one in train for word in getattr(one, language))
        assert min(counted.values()) >= 5
        assert {word for one in held_out for word in getattr(one, language)} <= set(counted)
        assert list(vocabulary.tokens[3:]) == sorted(counted)
        ledger.holds()


def test_the_same_seed_gives_the_same_sentences_in_every_process():
    assert data.phrases(50) == data.phrases(50) == data.phrases(80)[:50]
    assert data.phrases(50, seed=1) != data.phrases(50)
    first = "does a friend begin this book ? → est-ce qu' un ami commence ce livre ?"
    assert str(data.phrases(1, seed=5)[0]) == first


# --- typed text and readable text ------------------------------------------------------------


@pytest.mark.verifies("course_lib.data.english_words", against="tokens written by hand")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat sleeps.", "the cat sleeps ."),
        ("  Does   the cat\tsleep ?\n", "does the cat sleep ?"),
        ("Does she see him?", "does she see him ?"),
        ("He doesn't sleep.", "he does not sleep ."),
        ("They don\N{RIGHT SINGLE QUOTATION MARK}t sleep", "they do not sleep ."),
        ("She's happy", "she is happy ."),
        ("They're sad.", "they are sad ."),
        ("Look, the cat!", "look , the cat ! ."),
        ("The dog can't see", "the dog can't see ."),
        ("the cat's hat", "the cat's hat ."),
        ("The Élan sleeps", "the élan sleeps ."),
    ],
)
def test_typed_text_becomes_tokens(ledger, text, words):
    assert data.english_words(text) == words.split()
    ledger.holds()


@pytest.mark.verifies("course_lib.data.detokenize", against="sentences written by hand")
@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("le chat noir n' aime pas l' homme .", "Le chat noir n'aime pas l'homme."),
        ("est-ce qu' il voit l' école ?", "Est-ce qu'il voit l'école ?"),
        ("œufs .", "Œufs."),
        ("", ""),
    ],
)
def test_tokens_become_readable_text(ledger, tokens, text):
    assert data.detokenize(tokens.split()) == text
    ledger.holds()


@pytest.mark.usefixtures("without_annotations")
def test_what_cannot_be_is_refused_by_name():
    with pytest.raises(ValueError, match="split='held-out' is unknown.*'held out'"):
        data.phrases(2, split="held-out")
    with pytest.raises(ValueError, match="has no words"):
        data.english_words("?!")
    with pytest.raises(ValueError, match="continues after its first '.'"):
        data.english_words("He sleeps. She")


# --- alignment error rate ------------------------------------------------------------------------


def aligned(sure, possible=()):
    links = frozenset(sure), frozenset(sure) | set(possible)
    return data.Phrase(tuple("abcd"), tuple("wxyz"), *links, frozenset())


@pytest.mark.verifies(
    "course_lib.data.alignment_error_rate", against="Och and Ney (2003), worked out by hand"
)
def test_the_alignment_error_rate_is_that_of_och_and_ney(ledger):
    rate, one = data.alignment_error_rate, aligned({(0, 0), (1, 1)}, {(2, 2)})
    assert rate([{(0, 0), (1, 1)}], [one]) == 0
    assert rate([{(0, 0), (1, 1), (2, 2)}], [one]) == 0  # possible costs nothing
    # |A ∩ S| = 1, |A ∩ P| = 2, |A| = 3, |S| = 2: 1 - 3/5
    assert rate([{(0, 0), (2, 2), (3, 3)}], [one]) == pytest.approx(2 / 5)
    assert rate([{(3, 3)}], [one]) == rate([set()], [one]) == 1
    # counted over all sentences together, not a mean of the sentences' rates: 1 - (2 + 2) / (2 + 4)
    both = aligned({(0, 0)}), aligned({(0, 0), (1, 1), (2, 2)})
    assert rate([{(0, 0)}, {(1, 1)}], both) == pytest.approx(1 - 4 / 6)
    ledger.holds()


@pytest.mark.verifies("course_lib.data.strongest_links", against="a maximum per row, by hand")
def test_the_strongest_links_name_the_source_first(ledger):
    weights = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])  # (target, source)
    assert data.strongest_links(weights) == {(2, 0), (0, 1)}
    ledger.holds()


@pytest.mark.parametrize("link", [(4, 0), (0, 4)])
def test_links_that_cannot_be_are_refused(link):
    says = rf"found\[0\] has the link \({link[0]}, {link[1]}\).*4 English and 4 French"
    with pytest.raises(ValueError, match=says):
        data.alignment_error_rate([{link}], [aligned({(0, 0)})])
