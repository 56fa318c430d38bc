//! Prints bytecodes of a JVM's methods: `listing PID [CLASS[.METHOD]]`.
#![allow(clippy::print_stdout, reason = "it is what it is for")]
use vmscope_hotspot::bytecode::{ConstantPoolView, PoolLayout, listing};
use vmscope_hotspot::jvm::Jvm;
use vmscope_hotspot::method::ClassesLayout;
use vmscope_hotspot::pages::Pages;
use vmscope_process::ProcessView;
use vmscope_records::Pid;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: listing PID")?;
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let process = ProcessView::open(Pid(pid.parse()?))?;
    let pages = Pages::new(process.memory());
    let jvm = Jvm::open(&process, &pages)?;
    let methods = &jvm.methods;
    let pools = PoolLayout::of(&jvm.structs, methods.clone())?;
    let holders = ClassesLayout::of(&jvm.structs)?.read(&pages)?;
    for holder in holders {
        for method in methods.methods_of(&pages, holder)? {
            let info = methods.read(&pages, method)?;
            let name = format!("{}.{}", info.class, info.name);
            if !name.starts_with(&wanted) {
                continue;
            }
            let pool = ConstantPoolView::read(&pools, &pages, info.constants)?;
            println!("{name}{}", info.signature);
            for (bci, text) in listing(&info, &pool) {
                println!("{:6}: {text}", bci.0);
            }
            for line in &info.lines {
                println!("  line {}: {}", line.line, line.from.0);
            }
        }
    }
    Ok(())
}
