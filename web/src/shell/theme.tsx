/** Light or dark: what the system says, until somebody chooses; the choice is kept in this browser. */
import { useEffect, useState } from "preact/hooks";

const STORED = "evalwright-theme";
const DARK = "(prefers-color-scheme: dark)";

type Theme = "light" | "dark";

const systemTheme = (): Theme => (matchMedia(DARK).matches ? "dark" : "light");

function storedTheme(): Theme | null {
  try {
    const theme = localStorage.getItem(STORED);
    return theme === "light" || theme === "dark" ? theme : null;
  } catch {
    return null; // a browser that keeps nothing
  }
}

function apply(theme: Theme | null): void {
  if (theme === null) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function choose(theme: Theme): void {
  const chosen = theme === systemTheme() ? null : theme;
  apply(chosen);
  try {
    if (chosen === null) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, chosen);
  } catch {
    // it holds until the page is left
  }
}

apply(storedTheme());

export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(() => storedTheme() ?? systemTheme());
  useEffect(() => {
    const media = matchMedia(DARK);
    const follow = () => setTheme(storedTheme() ?? systemTheme());
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, []);
  const other = theme === "dark" ? "light" : "dark";
  return (
    <button
      type="button"
      onClick={() => {
        choose(other);
        setTheme(other);
      }}
    >
      {other === "dark" ? "Dark" : "Light"}
    </button>
  );
}
