//! Text with a terminal's colours from standard input, as an SVG on standard output: README's
//! pictures, which `docs/pictures` makes from real screens.

use std::io::Read;

/// Colours of a usual dark terminal, legible also inside a white page.
const PALETTE: anstyle_svg::Palette = anstyle_svg::WIN10_CONSOLE;

fn main() -> std::io::Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    #[expect(clippy::print_stdout, reason = "the picture is this program's output")]
    {
        let terminal = anstyle_svg::Term::new().palette(PALETTE);
        println!("{}", terminal.render_svg(&text));
    }
    Ok(())
}
