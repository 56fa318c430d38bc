//! Examples in the help of each command.

pub const ALL: &str = "\
Examples:
  vmscope demo                          profile the embedded VM: needs nothing else
  vmscope record -- java -jar app.jar   start a program and profile it
  vmscope attach java                   profile a running one, until Ctrl-C
  vmscope report                        the answer again, on one screen
  vmscope view                          browse it in the terminal";

pub const DEMO: &str = "\
Examples:
  vmscope demo
  vmscope demo --list                   the programs
  vmscope demo json --duration 10
  vmscope demo -e '1000 factorial printString size'
  vmscope demo dataframe --lifetimes    whom the collector works for";

pub const RECORD: &str = "\
Examples:
  vmscope record -- java -jar app.jar
  vmscope record --call-graph=off -- ./program input.txt  without callers: a little cheaper
  vmscope record -o slow.vmscope --duration 30 -- node server.js
  vmscope record --keep-last 60 -- ./server               the minute before Ctrl-C";

pub const LIFETIMES: &str = "\
Examples:
  vmscope record --lifetimes=1/100 -- vmscope reference-vm dataframe
  vmscope lifetimes
  vmscope lifetimes --by class --most-allocated 0.1
  vmscope lifetimes --html lifetimes.html       tables and charts for a browser";

pub const GC: &str = "\
Examples:
  vmscope gc                             the recording of vmscope demo dataframe --lifetimes
  vmscope gc --by class-and-site --json";

pub const ATTACH: &str = "\
Examples:
  vmscope attach 4711 --duration 30
  vmscope attach java                   the only process of that name
  vmscope attach 4711 4712              both, in one recording
  vmscope attach node -o slow.vmscope";

pub const REPORT: &str = "\
Examples:
  vmscope report                        recording.vmscope, on one screen
  vmscope report slow.vmscope --full    all sections
  vmscope report --tree                 who calls whom, with the samples of each call
  vmscope report --callers HashMap.get  who calls a method
  vmscope report --from 10 --to 20 --threads 'http-*'
  vmscope report --json | jq '.entries[0]'";

pub const TOP: &str = "\
Examples:
  vmscope top 4711
  vmscope top java";

pub const VIEW: &str = "\
Examples:
  vmscope view
  vmscope view slow.vmscope";

pub const ANNOTATE: &str = "\
Examples:
  vmscope annotate                      the hottest method
  vmscope annotate slow.vmscope Parser.parse";

pub const EXPORT: &str = "\
Examples:
  vmscope export --to flamegraph        recording.html
  vmscope export --to flamegraph --region gc -o gc.html
  vmscope export --to speedscope        recording.speedscope.json
  vmscope export slow.vmscope --to pprof --from 10 --until 20";

pub const IMPORT: &str = "\
Examples:
  vmscope import vmprofiler --samples pcs.bin --constituents zone.txt
  vmscope import vmprofiler --samples pcs.bin --constituents zone.txt --symbols squeak --load-address 55d0c8a00000
  vmscope report";

pub const DUMP: &str = "\
Examples:
  vmscope dump 4711
  vmscope dump java --json";

pub const REFERENCE_VM: &str = "\
Examples:
  vmscope reference-vm tiny.st -- 10
  vmscope record -- vmscope reference-vm richards
  vmscope reference-vm -e '100 factorial printString size'";

pub const CONSTITUENTS: &str = "\
Examples:
  vmscope constituents 4711
  vmscope constituents java --detailed
  vmscope constituents --core core.1234 --json
  vmscope constituents --core core.1234 --symbols squeak.symbols --pairs";

pub const DOCTOR: &str = "\
Examples:
  vmscope doctor
  vmscope doctor 4711                   what can be read of that process";
