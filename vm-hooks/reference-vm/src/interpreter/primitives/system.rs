//! The VM itself: collections, clocks, output, parameters, globals.

use std::io::Write;

use super::Args;
use super::strings::text;
use crate::interpreter::objects::{self, class_index, slot};
use crate::interpreter::raw::{Ip, Sp};
use crate::interpreter::vm::{Next, Outcome, Vm, cpu_ns, now_ns};
use crate::memory::{Oop, Parameters, classes};

/// Longest file that a program can read, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// `quit: exitCode`.
pub fn quit(vm: &mut Vm, _ip: Ip, sp: Sp, _count: usize) -> Option<Next> {
    let code = i32::try_from(sp.at(0).as_integer()?).ok()?;
    Some(vm.stop(Outcome::Quit(code)))
}

/// A full collection.
pub fn collect_full(vm: &mut Vm, ip: Ip, sp: Sp, count: usize) -> Option<Next> {
    Some(collect(vm, ip, sp, count, true))
}

/// A scavenge.
pub fn scavenge(vm: &mut Vm, ip: Ip, sp: Sp, count: usize) -> Option<Next> {
    Some(collect(vm, ip, sp, count, false))
}

fn collect(vm: &mut Vm, ip: Ip, sp: Sp, count: usize, full: bool) -> Next {
    vm.save_state(ip, sp);
    vm.collect_now(full, "program");
    // The next safe point wakes the finalization process.
    vm.ask_for_attention();
    let free = vm.heap.statistics().old_free;
    let free = Oop::small(i64::try_from(free).unwrap_or(0));
    Next {
        ip,
        sp: sp.replace(count + 1, free),
    }
}

/// Milliseconds since the VM's start.
pub fn milliseconds(vm: &mut Vm, _args: Args) -> Option<Oop> {
    let since = now_ns().saturating_sub(vm.started_ns);
    Oop::from_integer(i64::try_from(since / 1_000_000).ok()?)
}

/// Microseconds of the monotonic clock.
pub fn microseconds(_vm: &mut Vm, _args: Args) -> Option<Oop> {
    Oop::from_integer(i64::try_from(now_ns() / 1000).ok()?)
}

/// Microseconds of CPU time of the VM's thread.
pub fn cpu_microseconds(_vm: &mut Vm, _args: Args) -> Option<Oop> {
    Oop::from_integer(i64::try_from(cpu_ns() / 1000).ok()?)
}

/// `Semaphore signalAtMilliseconds:`.
pub fn signal_at(vm: &mut Vm, args: Args) -> Option<Oop> {
    let (semaphore, time) = (args.receiver(), args.integer(0)?);
    if class_index(semaphore) != classes::SEMAPHORE {
        return None;
    }
    let time = u64::try_from(time.max(0)).ok()?;
    let deadline = vm.started_ns.saturating_add(time.saturating_mul(1_000_000));
    vm.timers.push((deadline, semaphore));
    Some(semaphore)
}

/// Writes a String to standard output or standard error.
pub fn write(vm: &mut Vm, args: Args, is_error: bool) -> Option<Oop> {
    let text = text(args.at(0))?;
    let written = if is_error {
        let _ = vm.output.flush();
        vm.errors.write_all(text)
    } else {
        vm.output.write_all(text)
    };
    // A closed pipe is no program error, but further output has no reader.
    if written.is_err() {
        vm.outcome = Some(Outcome::Quit(1));
        vm.ask_for_attention();
    }
    Some(args.receiver())
}

/// The program's arguments.
pub fn arguments(vm: &mut Vm, _args: Args) -> Option<Oop> {
    let arguments = vm.arguments.clone();
    let strings: Option<Vec<Oop>> = arguments
        .iter()
        .map(|text| vm.string(text.as_bytes()))
        .collect();
    vm.array(&strings?)
}

/// A Symbol's name.
fn name(oop: Oop) -> Option<String> {
    if class_index(oop) != classes::SYMBOL {
        return None;
    }
    Some(String::from_utf8_lossy(text(oop)?).into_owned())
}

/// `Smalltalk at: aSymbol`.
pub fn global_at(vm: &mut Vm, args: Args) -> Option<Oop> {
    let association = vm.image.globals.get(&name(args.at(0))?)?;
    let value = slot(*association, 1);
    (value != vm.known.nil).then_some(value)
}

/// `Smalltalk at: aSymbol put: value`.
pub fn global_at_put(vm: &mut Vm, args: Args) -> Option<Oop> {
    if args.count != 2 {
        return None;
    }
    let association = vm.image.global(&mut vm.heap, &name(args.at(0))?).ok()?;
    vm.heap.store(association, 1, args.at(1));
    Some(args.at(1))
}

/// The class of a metaclass.
pub fn sole_instance(vm: &mut Vm, args: Args) -> Option<Oop> {
    if !vm.is_class(args.receiver()) {
        return None;
    }
    let class = vm.image.class(vm.class_index_of(args.receiver()))?;
    let other = vm.image.class(class.other)?;
    class.meta.then_some(other.oop)
}

/// Whether the class itself (without superclasses) defines the selector.
pub fn includes_selector(vm: &mut Vm, args: Args) -> Option<Oop> {
    if !vm.is_class(args.receiver()) {
        return None;
    }
    let class = vm.image.class(vm.class_index_of(args.receiver()))?;
    Some(vm.boolean(class.methods.contains_key(&args.at(0))))
}

/// Selectors of the class's own methods, sorted alphabetically.
pub fn selectors(vm: &mut Vm, args: Args) -> Option<Oop> {
    if !vm.is_class(args.receiver()) {
        return None;
    }
    let class = vm.image.class(vm.class_index_of(args.receiver()))?;
    let mut selectors: Vec<Oop> = class.methods.keys().copied().collect();
    selectors.sort_by_key(|selector| text(*selector));
    vm.array(&selectors)
}

/// A file's contents as String.
pub fn file_contents(vm: &mut Vm, args: Args) -> Option<Oop> {
    use std::io::Read;
    let path = std::str::from_utf8(text(args.at(0))?).ok()?;
    let file = std::fs::File::open(path).ok()?;
    let mut contents = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut contents).ok()?;
    vm.string(&contents)
}

/// Whether new instances of the receiver are allocated in old space.
pub fn pretenure(vm: &mut Vm, args: Args) -> Option<Oop> {
    let (class, on) = (args.receiver(), args.at(0));
    if !vm.is_class(class) || (on != vm.known.yes && on != vm.known.no) {
        return None;
    }
    let index = vm.class_index_of(class);
    vm.heap.pretenure_class(index, on == vm.known.yes);
    Some(class)
}

/// Number of the full-GC ratio, the only VM parameter that is a Float.
const FULL_GC_RATIO: i64 = 55;
/// Largest size that a program can set, in bytes.
const MOST_PARAMETER_BYTES: i64 = 1 << 40;
/// Largest full-GC ratio that a program can set.
const MOST_RATIO: f64 = 1e6;

/// Cog's VM parameters. With a second argument: sets the parameter, and answers the value before.
pub fn parameter(vm: &mut Vm, args: Args) -> Option<Oop> {
    let number = args.integer(0)?;
    let before = if number == FULL_GC_RATIO {
        let ratio = vm.heap.parameters().full_gc_ratio;
        vm.float(ratio)?
    } else {
        let value = vm.vm_parameter(number)?;
        Oop::from_integer(i64::try_from(value).unwrap_or(i64::MAX >> 3))?
    };
    if args.count == 2 {
        set_parameter(vm, number, args.at(1))?;
        vm.publish_parameters();
    }
    Some(before)
}

/// Sets a VM parameter. `None` for constant parameters and invalid values.
fn set_parameter(vm: &mut Vm, number: i64, value: Oop) -> Option<()> {
    if number == FULL_GC_RATIO {
        let ratio = objects::float(value).or(value.as_integer().map(|ratio| ratio as f64))?;
        let is_possible = (0.0..=MOST_RATIO).contains(&ratio);
        return is_possible.then(|| vm.heap.change_parameters(|all| all.full_gc_ratio = ratio));
    }
    let most = if number == 6 {
        100
    } else {
        MOST_PARAMETER_BYTES
    };
    let value = value.as_integer().filter(|value| *value <= most)?;
    let value = usize::try_from(value).ok()?;
    let field: fn(&mut Parameters) -> &mut usize = match number {
        6 => |all| &mut all.tenuring_threshold,
        24 => |all| &mut all.shrink_threshold,
        25 => |all| &mut all.growth_headroom,
        _ => return None,
    };
    vm.heap.change_parameters(|all| *field(all) = value);
    Some(())
}

/// Contents of the code zone: an Array of pairs (name, address), sorted by address. With argument
/// true, the pairs are (name, Array): the Array holds the address, then machine-code addresses
/// alternating with bytecode pcs.
pub fn code_constituents(vm: &mut Vm, args: Args) -> Option<Oop> {
    let is_detailed = match args.at(0) {
        argument if argument == vm.known.yes => true,
        argument if argument == vm.known.no => false,
        _ => return None,
    };
    let mut elements = Vec::new();
    for (name, words) in vm.code_constituents() {
        let number = |word: &u64| Oop::from_integer(i64::try_from(*word).ok()?);
        elements.push(vm.string(name.as_bytes())?);
        elements.push(match is_detailed {
            true => {
                let words: Option<Vec<Oop>> = words.iter().map(number).collect();
                vm.array(&words?)?
            }
            false => number(words.first()?)?,
        });
    }
    vm.array(&elements)
}
