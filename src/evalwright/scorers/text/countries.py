"""Countries and continents, as the words that end their names."""

from __future__ import annotations

from evalwright.scorers.text.wordlists import word_set

COUNTRIES = word_set(
    "afghanistan albania algeria andorra angola argentina armenia australia austria azerbaijan bahamas bahrain bangladesh barbados",
    "belarus belgium belize benin bhutan bolivia bosnia herzegovina botswana brazil britain brunei bulgaria burma burundi cambodia",
    "cameroon canada chad chile china colombia comoros congo croatia cuba cyprus czechia denmark djibouti dominica ecuador egypt",
    "england eritrea estonia eswatini ethiopia fiji finland france gabon gambia georgia germany ghana greece greenland grenada",
    "guatemala guinea guyana haiti honduras hungary iceland india indonesia iran iraq ireland israel italy jamaica japan jordan",
    "kazakhstan kenya kiribati korea kosovo kuwait kyrgyzstan laos latvia lebanon lesotho liberia libya liechtenstein lithuania",
    "luxembourg macedonia madagascar malawi malaysia maldives mali malta mauritania mauritius mexico micronesia moldova monaco",
    "mongolia montenegro morocco mozambique myanmar namibia nauru nepal netherlands nicaragua niger nigeria norway oman pakistan",
    "palau palestine panama paraguay peru philippines poland portugal qatar romania russia rwanda samoa scotland senegal serbia",
    "seychelles singapore slovakia slovenia somalia spain sudan suriname sweden switzerland syria taiwan tajikistan tanzania",
    "thailand timor-leste togo tonga tunisia turkey türkiye turkmenistan tuvalu uganda ukraine uk us usa uruguay uzbekistan vanuatu",
    "venezuela vietnam wales yemen zambia zimbabwe africa america antarctica asia europe oceania republic kingdom states zealand",
    "arabia emirates lanka rica salvador leone",
)
"""Last words of countries' and continents' names: a list that ends in one may be a place with what it lies in."""
