"""The tools of the helpdesks: `python3 desk.py TOOL`, with the arguments as JSON on standard input.

The state is /desk/state.json. The tools do what they are asked to, if it is possible at all: whether
it is allowed is said in the policy, and it is the helpdesk's to keep it.
"""

import json
import os
import sys
from pathlib import Path

STATE = Path(__file__).with_name("state.json")


class Refused(Exception):
    """The call cannot be carried out; the message is for who called."""


def row_of(table, key, noun):
    """Return a row of a table."""
    if not isinstance(key, str) or key not in table:
        raise Refused(f"There is no {noun} '{key}'.")
    return table[key]


def whole(number, name, least=0):
    """Return a whole number of at least `least`."""
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise Refused(f"`{name}` is a whole number of at least {least}.")
    return number


def hand_over(state, reason):
    state["handed_over"] = True
    return "A colleague takes over this conversation."


# The airline.


def find_booking(state, booking, last_name):
    row = row_of(state["bookings"], booking, "booking")
    if str(last_name).strip().casefold() != row["last_name"].casefold():
        raise Refused("The last name does not belong to this booking.")
    return {"booking": booking, **row, "flight_details": state["flights"][row["flight"]]}


def search_flights(state, origin, destination, day):
    return {
        number: flight
        for number, flight in state["flights"].items()
        if [flight["from"], flight["to"], flight["day"]] == [origin, destination, day]
    } or "No flights."


def change_flight(state, booking, flight):
    row = row_of(state["bookings"], booking, "booking")
    seats = row_of(state["flights"], flight, "flight")
    if seats["seats"] < 1:
        raise Refused(f"The flight {flight} is full.")
    state["flights"][row["flight"]]["seats"] += 1
    seats["seats"] -= 1
    row["flight"] = flight
    return f"The booking {booking} is on the flight {flight} now."


def cancel_booking(state, booking, refund_cents):
    row = row_of(state["bookings"], booking, "booking")
    row["status"] = "cancelled"
    row["refunded_cents"] = whole(refund_cents, "refund_cents")
    return f"The booking {booking} is cancelled; {refund_cents} cents are paid back."


def add_bags(state, booking, bags):
    row = row_of(state["bookings"], booking, "booking")
    row["bags"] += whole(bags, "bags", 1)
    return f"The booking {booking} has {row['bags']} bags now."


# The bank.


def identify_customer(state, account, birthday):
    row = row_of(state["accounts"], account, "account")
    if birthday != row["birthday"]:
        raise Refused("The birthday does not belong to this account.")
    return {"account": account, **row}


def block_card(state, account, last_digits, reason):
    cards = row_of(state["accounts"], account, "account")["cards"]
    row_of(cards, last_digits, "card of this account ending in")
    if reason not in ("lost", "stolen"):
        raise Refused("`reason` is lost or stolen.")
    cards[last_digits] = reason
    return f"The card {last_digits} is blocked: {reason}."


def transfer(state, account, to, cents):
    row = row_of(state["accounts"], account, "account")
    if whole(cents, "cents", 1) > row["balance_cents"]:
        raise Refused("There is not enough money in the account.")
    row["balance_cents"] -= cents
    state["transfers"].append({"account": account, "to": to, "cents": cents})
    return f"{cents} cents are on their way to {to}."


def refund_fee(state, account, entry):
    row = row_of(state["accounts"], account, "account")
    fee = row_of(row["entries"], entry, "entry")
    if fee.get("refunded"):
        raise Refused("This fee was paid back before.")
    fee["refunded"] = True
    row["balance_cents"] += fee["cents"]
    return f"The fee {entry} of {fee['cents']} cents is paid back."


# The library.


def find_member(state, card, last_name):
    row = row_of(state["members"], card, "member")
    if str(last_name).strip().casefold() != row["last_name"].casefold():
        raise Refused("The last name does not belong to this card.")
    loans = {number: loan for number, loan in state["loans"].items() if loan["card"] == card}
    return {"card": card, **row, "loans": loans}


def find_books(state, title):
    words = str(title).casefold()
    return {
        number: book for number, book in state["books"].items() if words in book["title"].casefold()
    } or "No books."


def renew_loan(state, loan):
    row = row_of(state["loans"], loan, "loan")
    row["renewals"] += 1
    row["due"] = state["next_due"]
    return f"The loan {loan} is due on {row['due']} now."


def reserve_book(state, card, book):
    row_of(state["members"], card, "member")
    waiting = row_of(state["books"], book, "book")["reserved_by"]
    if card in waiting:
        raise Refused("The member has reserved this book already.")
    waiting.append(card)
    return f"The book {book} is reserved; the member is number {len(waiting)} in the queue."


def pay_fine(state, card, cents):
    row = row_of(state["members"], card, "member")
    if whole(cents, "cents", 1) > row["fine_cents"]:
        raise Refused(f"The fine is {row['fine_cents']} cents.")
    row["fine_cents"] -= cents
    return f"Paid. {row['fine_cents']} cents are left."


# The shop.


def find_order(state, order, email):
    row = row_of(state["orders"], order, "order")
    if str(email).strip().casefold() != row["email"].casefold():
        raise Refused("The mail address does not belong to this order.")
    return {"order": order, **row}


def show_stock(state, product):
    return row_of(state["stock"], product, "product")


def return_item(state, order, item):
    row = row_of(row_of(state["orders"], order, "order")["items"], item, "item of this order")
    row["status"] = "to be returned"
    return f"A label for the return of {item} is on its way by mail."


def exchange_item(state, order, item, size):
    row = row_of(row_of(state["orders"], order, "order")["items"], item, "item of this order")
    sizes = row_of(state["stock"], row["product"], "product")
    if sizes.get(size, 0) < 1:
        raise Refused(f"There is no {row['product']} of the size {size} in stock.")
    sizes[size] -= 1
    row["status"] = f"exchanged for {size}"
    return f"{item} is exchanged for the size {size}."


def change_address(state, order, address):
    row_of(state["orders"], order, "order")["address"] = address
    return f"The order {order} goes to {address}."


# The phone company.


def find_line(state, number, pin):
    row = row_of(state["lines"], number, "line")
    if str(pin) != row["pin"]:
        raise Refused("The PIN is wrong.")
    return {"number": number, **{name: row[name] for name in row if name != "pin"}}


def list_plans(state):
    return state["plans"]


def change_plan(state, number, plan):
    row = row_of(state["lines"], number, "line")
    row_of(state["plans"], plan, "plan")
    row["plan"] = plan
    return f"The line {number} has the plan {plan} from the first of the next month on."


def cancel_line(state, number, last_day):
    row_of(state["lines"], number, "line")["ends"] = last_day
    return f"The line {number} ends on {last_day}."


TOOLS = {
    "airline": [find_booking, search_flights, change_flight, cancel_booking, add_bags],
    "bank": [identify_customer, block_card, transfer, refund_fee],
    "library": [find_member, find_books, renew_loan, reserve_book, pay_fine],
    "shop": [find_order, show_stock, return_item, exchange_item, change_address],
    "phone": [find_line, list_plans, change_plan, cancel_line],
}


def main():
    """Carry out one call."""
    state = json.loads(STATE.read_text(encoding="utf-8"))
    tools = {tool.__name__: tool for tool in [*TOOLS[state["desk"]], hand_over]}
    arguments = json.load(sys.stdin)
    tool = tools[sys.argv[1]]
    names = tool.__code__.co_varnames[1 : tool.__code__.co_argcount]
    for name in names:
        if name not in arguments:
            raise Refused(f"The argument '{name}' is missing.")
    for name in arguments:
        if name not in names:
            raise Refused(f"There is no argument '{name}'. The arguments are: {', '.join(names)}.")
    outcome = tool(state, **arguments)
    beside = STATE.with_suffix(".new")
    beside.write_text(json.dumps(state, ensure_ascii=False, indent=1), encoding="utf-8")
    os.replace(beside, STATE)
    print(outcome if isinstance(outcome, str) else json.dumps(outcome, ensure_ascii=False, indent=1))


if __name__ == "__main__":
    try:
        main()
    except Refused as refusal:
        sys.exit(f"Not done: {refusal}")
