"""How an answer is read: from what a model wrote to a score, one step per file.

    scorers/short_answer.py     handles empty replies and ones that decline to answer
    reply.py                    a `ParsedReply`: which part of the reply is the answer
    claims.py                   a `Claim`: what a mark such as "Answer:" sets apart
    further_question.py         where a model goes on to ask itself the next question
    readers.py                  the kind of a sample's targets, and so the reader for it
    *_reader.py                 whether the answer is a target: a reader has one method, `judge`
    verdict.py                  a `Verdict`: correct, incorrect, ..., why, and any doubt

| targets | a target is | read in a text by | judged by |
|---|---|---|---|
| names | `NameTarget`; in a text a `Mention` (name_targets.py) | text/folded.py | name_reader.py |
| numbers | `NumberTarget`, `Tolerance` (number_targets.py) | text/numbers.py | number_reader.py |
| dates | `Date` (text/dates.py) | text/dates.py | date_reader.py |
| times | a text such as "14:30" | time_reader.py | time_reader.py |
| formulas | a text in LaTeX or symbols | text/formulas.py | formula_reader.py |
| yes, no | "yes" or "no" | text/cues.toml | yes_no_reader.py |
| no answer | a phrase | text/declining.py | phrase_reader.py |
| options | the sample's choices | option_letters.py, option_texts.py | option_reader.py |

Where to make a change:

- which forms of a date are read: text/dates.py, with tests/scorers/test_dates.py;
- which of a reply's dates counts: date_reader.py;
- what counts as an alias of a name: `forms` in name_targets.py;
- words of a language: the tables of text/ (cues.toml, marks.toml, declining.toml, numbers.toml).

The scorers `numeric`, `choice` and `final-answer` use the same parts: number_reader.py,
option_reader.py and the readers for numbers and formulas.
"""
