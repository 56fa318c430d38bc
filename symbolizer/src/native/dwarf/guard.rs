//! Checks on tables that gimli reads whole: abbreviations, and directories and files before a line
//! program.
//!
//! gimli trusts their counts. With a form of no bytes (`DW_FORM_flag_present`), a file table of a
//! dozen bytes has 2^64 entries. Many units may share one large abbreviation table, read again for
//! each.

use std::sync::Arc;

use gimli::{
    Abbreviations, AttributeValue, Reader, ReaderOffset, Section as _, UnitHeader, constants,
};

use super::super::limits;
use super::{Budget, Dwarf, Slice, Stop, Unit};

/// Charges the budget, then opens the unit.
pub(super) fn open<'a>(
    dwarf: &Dwarf<'a>,
    header: UnitHeader<Slice<'a>>,
    abbreviations: Arc<Abbreviations>,
    budget: &Budget,
) -> Result<Unit<'a>, Stop> {
    let mut entries = header.entries_raw(&abbreviations, None)?;
    if let Some(abbreviation) = entries.read_abbreviation()? {
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            if attribute.name() == constants::DW_AT_stmt_list
                && let AttributeValue::DebugLineRef(offset) = attribute.value()
            {
                line_tables(dwarf, offset.0, budget)?;
            }
        }
    }
    Ok(Unit::new_with_abbreviations(dwarf, header, abbreviations)?)
}

pub(super) fn abbreviations(
    dwarf: &Dwarf<'_>,
    header: &UnitHeader<Slice<'_>>,
    budget: &Budget,
) -> Result<Arc<Abbreviations>, Stop> {
    let mut rest = *dwarf.debug_abbrev.reader();
    rest.skip(header.debug_abbrev_offset().0)?;
    let before = rest.len();
    // DWARF 5, §7.5.3: code, tag, children, then pairs of name and form; a pair of zeros ends an
    // abbreviation, a zero code ends the table.
    while rest.read_uleb128()? != 0 {
        rest.read_uleb128()?;
        rest.read_u8()?;
        loop {
            let (name, form) = (rest.read_uleb128()?, rest.read_uleb128()?);
            budget.spend(1)?;
            if form == u64::from(constants::DW_FORM_implicit_const.0) {
                rest.read_sleb128()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
    }
    if before - rest.len() > limits::ABBREVIATIONS_BYTES {
        return Err(Stop::Damaged);
    }
    Ok(dwarf.abbreviations(header)?)
}

/// Checks the tables before the line program at `offset` (DWARF 5, §6.2.4).
fn line_tables(dwarf: &Dwarf<'_>, offset: usize, budget: &Budget) -> Result<(), Stop> {
    let mut rest = *dwarf.debug_line.reader();
    rest.skip(offset)?;
    let (length, format) = rest.read_initial_length()?;
    rest.truncate(length)?;
    let version = rest.read_u16()?;
    if version >= 5 {
        // Address size and segment selector size.
        rest.skip(2)?;
    }
    let length = rest.read_offset(format)?;
    if length > limits::LINE_HEADER_BYTES {
        return Err(Stop::Damaged);
    }
    rest.truncate(length)?;
    budget.spend(length as u64 / 8)?;
    if version < 5 {
        // Each entry ends with a zero: at least one byte.
        return Ok(());
    }
    // minimum_instruction_length to line_range.
    rest.skip(5)?;
    let opcode_base = rest.read_u8()?;
    rest.skip(usize::from(opcode_base.saturating_sub(1)))?;
    for _ in ["directories", "files"] {
        let mut forms = Vec::new();
        for _ in 0..rest.read_u8()? {
            rest.read_uleb128()?;
            forms.push(constants::DwForm(rest.read_uleb128_u16()?));
        }
        for _ in 0..rest.read_uleb128()? {
            budget.spend(1)?;
            let before = rest.len();
            for form in &forms {
                skip_form(&mut rest, *form, format)?;
            }
            // Entries without bytes never end.
            if rest.len() == before {
                return Err(Stop::Damaged);
            }
        }
    }
    Ok(())
}

/// Skips a value of a form allowed in these tables.
fn skip_form(
    rest: &mut Slice<'_>,
    form: constants::DwForm,
    format: gimli::Format,
) -> Result<(), Stop> {
    let len = match form {
        constants::DW_FORM_string => {
            rest.read_null_terminated_slice()?;
            0
        }
        constants::DW_FORM_line_strp
        | constants::DW_FORM_strp
        | constants::DW_FORM_strp_sup
        | constants::DW_FORM_sec_offset => usize::from(format.word_size()),
        constants::DW_FORM_udata | constants::DW_FORM_strx => {
            rest.read_uleb128()?;
            0
        }
        constants::DW_FORM_block => usize::from_u64(rest.read_uleb128()?)?,
        constants::DW_FORM_data1 | constants::DW_FORM_strx1 => 1,
        constants::DW_FORM_data2 | constants::DW_FORM_strx2 => 2,
        constants::DW_FORM_strx3 => 3,
        constants::DW_FORM_data4 | constants::DW_FORM_strx4 => 4,
        constants::DW_FORM_data8 => 8,
        constants::DW_FORM_data16 => 16,
        _ => return Err(Stop::Damaged),
    };
    rest.skip(len)?;
    Ok(())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests say what went wrong by failing")]
mod tests {
    use gimli::{EndianSlice, RunTimeEndian};

    use super::*;

    /// A DWARF 5 line header; file table entries have one form.
    fn tables(form: u8, count: &[u8], entries: &[u8]) -> Vec<u8> {
        let mut body = vec![1, 1, 1, 0xfb, 14, 1, 0, 0, 1, 1, form];
        body.extend(count);
        body.extend(entries);
        let mut header = vec![5, 0, 8, 0];
        header.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        header.extend(body);
        let mut all = u32::try_from(header.len()).unwrap().to_le_bytes().to_vec();
        all.extend(header);
        all
    }

    fn check(line: &[u8]) -> Result<(), Stop> {
        let dwarf = gimli::Dwarf {
            debug_line: gimli::DebugLine::from(EndianSlice::new(line, RunTimeEndian::Little)),
            ..Default::default()
        };
        line_tables(&dwarf, 0, &Budget::new(1000))
    }

    #[test]
    fn tables_without_an_end_are_refused() {
        assert!(check(&tables(0x08, &[2], b"a\0b\0")).is_ok());
        // DW_FORM_flag_present, 2^63 times.
        let endless = tables(0x19, b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", b"");
        assert!(matches!(check(&endless), Err(Stop::Damaged)));
        // More entries than bytes.
        assert!(matches!(
            check(&tables(0x0b, &[9], b"abc")),
            Err(Stop::Damaged)
        ));
    }
}
