"""Ninety decisions of one call each, for what a model's confidence is worth: each seed is one text of each kind.

forge eval run benchmarks/confidence/decisions.py --runs 30 --backend …, with a player that sets `unsure` (README.md).
"""

from collections.abc import Mapping
from typing import Literal

from forge import Workflow, tool
from forge.evals import Scenario, Trajectory, World

TICKETS: Mapping[str, tuple[str, ...]] = {
    "billing": (
        "I was charged twice for the same month.",
        "The invoice has my old company name on it, and accounting won't take it.",
        "Why is there a fee of 3.50 on my statement that nobody told me about?",
        "You took the money, then my card was blocked, and now the refund has nowhere to go.",
        "I cancelled in March and you still took money in April.",
        "My discount code was accepted, but the full price left my account.",
        "Can I pay by bank transfer instead of by card from next month on?",
        "I need a receipt with the tax shown for what I bought in the shop.",
    ),
    "delivery": (
        "The parcel says delivered, but there is nothing at the door.",
        "It was left with a neighbour whom nobody in this house knows.",
        "Tracking has not moved since Tuesday.",
        "Can you send it to my office instead? I am away from home until Friday.",
        "The box came open and one of the two lamps is missing.",
        "I ordered express and it has been nine days.",
        "The courier wants customs papers that I don't have.",
    ),
    "technical": (
        "Since the update the app closes as soon as I open the camera.",
        "I reset my password four times and it still says it is wrong.",
        "The screen stays black although the light is on.",
        "It connects to the phone, but no sound comes out.",
        "Your site shows a blank page when I press the button to pay.",
        "The printer prints every second page upside down.",
        "How do I move my data to the new device?",
        "The export ends with error 504.",
    ),
    "sales": (
        "Do you have the blue one in size 44, and what would twenty cost?",
        "We are a school; is there a licence for a whole class?",
        "What is the difference between the small and the large plan?",
        "Could somebody show us the product next week before we decide?",
        "Is the new model worth it if I have last year's?",
        "I would like to become a reseller in Portugal.",
        "When will it be in stock again? I want to order three.",
    ),
}

REQUESTS: Mapping[str, tuple[str, ...]] = {
    "today": (
        "There is water coming through the ceiling into the server room.",
        "The flight leaves at six this evening and the name on the ticket is wrong.",
        "Nobody can log in, the whole office is waiting.",
        "My daughter swallowed a part of your toy, what is it made of?",
        "The till does not open and there are customers in the shop.",
        "The contract has to be signed by five this afternoon, and the link is dead.",
        "The freezer with the vaccines shows plus nine degrees.",
        "Our site sells everything for 0.00 since the last change.",
        "Somebody is using my account right now, I can see the orders.",
        "The lift has stopped with two people in it.",
    ),
    "this week": (
        "The audit is on Friday, by then we need last year's statements.",
        "One of our two printers is broken; we manage with the other until the weekend.",
        "My new colleague starts on Thursday and needs an account.",
        "The certificate runs out in five days.",
        "Please replace the flickering lamp before the meeting on Wednesday.",
        "The monthly report shows a wrong total; it goes to the board at the end of the week.",
        "The heating in meeting room 2 is weak, and there is a workshop in there on Thursday.",
        "We are moving to the second floor on Saturday and need the sockets there by then.",
        "Two invoices are due on Friday and I cannot approve them.",
        "The badge of our visitor from Tokyo has to be ready by Wednesday.",
    ),
    "whenever": (
        "It would be nice if the button were green.",
        "A typing error on page 40 of the manual: recieve.",
        "Is there a chance of a dark mode some day?",
        "The chair squeaks a little, it does not bother me much.",
        "I would like my name written with an accent in the directory.",
        "Could the newsletter come once a month instead of weekly?",
        "An idea for next year's catalogue: show the backs as well.",
        "If somebody passes by, the clock in the hall is two minutes slow.",
        "Please tidy up the old folders when you have the time.",
        "Just a thought: the coffee machine could have a timer.",
    ),
}

REVIEWS: Mapping[str, tuple[str, ...]] = {
    "yes": (
        "Cheaper than the others and it simply works. Get one.",
        "After two years it looks like new. I have bought a second one for my sister.",
        "I had my doubts, and every one of them was wrong.",
        "The box was crushed, but what was in it is the best knife I have ever owned.",
        "Not pretty, not light, and I would not give it away for anything.",
        "My old one lasted twelve years, and this one is better.",
        "The manual is hopeless. You won't need it: it is that easy.",
        "Worth every cent.",
        "I returned three others before this one, and this one stays.",
        "If only I had found it earlier!",
    ),
    "no": (
        "It broke on the second day, and so did the one they sent instead.",
        "Lovely colour. That is all that is good about it.",
        "They answer quickly: to say that they cannot help.",
        "I wanted to like it. I really tried.",
        "Great if you enjoy charging it every hour.",
        "The old version was perfect; this one is a different thing under the same name.",
        "Save your money.",
        "It does what it says for a week.",
        "Five stars for the packaging, which is now the only part in use.",
        "My neighbour warned me, and my neighbour was right.",
    ),
    "mixed": (
        "The sound is superb and the battery is a joke; it depends on what you need.",
        "Fine at home, useless on the road.",
        "I would buy it again at half the price.",
        "Half of what it promises it does very well, the other half not at all.",
        "Good for beginners; others will soon want more.",
        "The left one is perfect, the right one crackles.",
        "Some days I love it, some days it stays in the drawer.",
        "The food was excellent, the room was not.",
        "Nothing is wrong with it, and nothing is special about it.",
        "Fast, quiet and far too big.",
    ),
}


def _nth(kinds: Mapping[str, tuple[str, ...]], seed: int) -> tuple[str, str]:
    """The text of that seed and what it is, kinds in turn; the same again after thirty seeds."""
    texts = [(text, kind) for row in range(10) for kind, some in kinds.items() for text in some[row : row + 1]]
    return texts[(seed - 1) % len(texts)]


def _world(workflow: Workflow[str], message: str, answer: str) -> World:
    def right(run: Trajectory) -> str:
        (*_, last) = (next(iter(call.arguments.values())) for call in run.calls) if run.calls else ("nothing",)
        return "" if last == answer else f"{last}, not {answer}"

    return World(workflow=workflow, messages=(message,), right=right)


def _queue(seed: int) -> World:
    @tool
    def route(queue: Literal["billing", "delivery", "technical", "sales"]) -> str:
        """Put the customer's message into the queue of the team that can help."""
        return queue

    text, answer = _nth(TICKETS, seed)
    return _world(Workflow("queue", tools=[route], terminal_tool="route"), f"A customer writes: {text}", answer)


def _urgency(seed: int) -> World:
    @tool
    def schedule(when: Literal["today", "this week", "whenever"]) -> str:
        """Say by when somebody has to look after the request."""
        return when

    text, answer = _nth(REQUESTS, seed)
    return _world(Workflow("urgency", tools=[schedule], terminal_tool="schedule"), f"A request: {text}", answer)


def _review(seed: int) -> World:
    @tool
    def file_review(recommends: Literal["yes", "no", "mixed"]) -> str:
        """File the review by whether its writer recommends the product."""
        return recommends

    text, answer = _nth(REVIEWS, seed)
    return _world(Workflow("review", tools=[file_review], terminal_tool="file_review"), f"A review: {text}", answer)


SCENARIOS = [
    Scenario(name="queue", about="A message into one of four queues.", world=_queue, ideal_calls=1),
    Scenario(name="urgency", about="A request by when it is needed.", world=_urgency, ideal_calls=1),
    Scenario(name="review", about="A review by what it recommends.", world=_review, ideal_calls=1),
]
