CREATE TABLE people (id INTEGER PRIMARY KEY, first_name TEXT NOT NULL, last_name TEXT NOT NULL);
CREATE TABLE emails (person_id INTEGER NOT NULL REFERENCES people (id), position INTEGER NOT NULL, address TEXT NOT NULL, PRIMARY KEY (person_id, position));
CREATE TABLE notes (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES people (id), text TEXT NOT NULL);
PRAGMA user_version = 2;
