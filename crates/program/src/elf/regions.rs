//! Which addresses hold code, which hold data, and which data cannot change at run time.
//!
//! The extents come from the section headers when there are any, the bytes always from the
//! loadable segments. All three lists are sorted and disjoint.

use object::elf;
use object::endian::LittleEndian as LE;

use super::Region;
use super::sections::{SectionHeader, Sections};
use super::segments::{Load, Segments};
use crate::{Address, Range, Warning};

/// What the loader rounds PT_GNU_RELRO to.
const PAGE: u64 = 4096;

/// The three views of a program's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Regions<'data> {
    /// Executable bytes.
    pub(crate) code: Vec<Region<'data>>,
    /// Everything else that the file has bytes for.
    pub(crate) data: Vec<Region<'data>>,
    /// Bytes that nothing writes once the loader is done.
    pub(crate) constant: Vec<Region<'data>>,
}

impl<'data> Regions<'data> {
    /// Reads all three.
    pub(crate) fn read(
        segments: &Segments<'data>,
        sections: &Sections<'data>,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        let mut code = from_sections(segments, sections, true, warnings);
        let has_sections = !code.is_empty();
        if !has_sections {
            if !sections.all().is_empty() {
                let what = "no section holds code; executable segments are used whole";
                warnings.push(Warning::new("section headers", what));
            }
            code = whole_segments(segments, true);
        }
        let data = if has_sections {
            from_sections(segments, sections, false, warnings)
        } else {
            whole_segments(segments, false)
        };
        let constant = constants(segments, sections);
        Self {
            code,
            data,
            constant,
        }
    }
}

/// The region of a sorted, disjoint list that holds `address`.
pub(crate) fn find<'list, 'data>(
    list: &'list [Region<'data>],
    address: Address,
) -> Option<&'list Region<'data>> {
    let after = list.partition_point(|region| region.range.start() <= address);
    let region = list.get(after.checked_sub(1)?)?;
    region.range.contains(address).then_some(region)
}

/// The bytes from `address` to the end of its region in a sorted, disjoint list.
pub(crate) fn bytes_at<'data>(list: &[Region<'data>], address: Address) -> Option<&'data [u8]> {
    let region = find(list, address)?;
    let offset = address.offset_from(region.range.start())?;
    region.bytes.get(usize::try_from(offset).ok()?..)
}

/// The segments that are (not) executable, as far as the file has them.
fn whole_segments<'data>(segments: &Segments<'data>, executable: bool) -> Vec<Region<'data>> {
    let loads = segments
        .loads()
        .iter()
        .filter(|load| load.executable == executable);
    loads
        .filter_map(|load| part(load, load.file_range(), ""))
        .collect()
}

/// The part of a segment's file bytes that lies in `range`, unless it is empty.
fn part<'data>(load: &Load<'data>, range: Range, name: &'data str) -> Option<Region<'data>> {
    let start = range.start().max(load.range.start());
    let end = range.end().min(load.file_range().end());
    let range = Range::new(start, end).filter(|range| !range.is_empty())?;
    let bytes = load
        .from(start)?
        .get(..usize::try_from(range.size()).ok()?)?;
    Some(Region { range, bytes, name })
}

/// The allocated sections that have bytes and are (not) code.
fn from_sections<'data>(
    segments: &Segments<'data>,
    sections: &Sections<'data>,
    code: bool,
    warnings: &mut Vec<Warning>,
) -> Vec<Region<'data>> {
    let wanted = sections.all().iter().filter(|section| {
        let fits = section.is_code() == code && section.is_allocated() && section.has_bytes();
        fits && section.size > 0 && (!code || section.kind == elf::SHT_PROGBITS)
    });
    let mut regions: Vec<_> = wanted
        .filter_map(|section| match mapped(segments, section, code) {
            Ok((region, odd)) => {
                warnings.extend(odd.map(|what| Warning::new(section.name.to_owned(), what)));
                Some(region)
            }
            Err(what) => {
                warnings.push(Warning::new(section.name.to_owned(), what));
                None
            }
        })
        .collect();
    make_disjoint(&mut regions, warnings);
    regions
}

/// The bytes of a section by the segment that holds it, and what the two do not agree upon.
fn mapped<'data>(
    segments: &Segments<'data>,
    section: &SectionHeader<'data>,
    code: bool,
) -> Result<(Region<'data>, Option<&'static str>), &'static str> {
    let range = section
        .range()
        .ok_or("sh_addr + sh_size passes the end of the address space")?;
    let load = segments
        .load_at(range.start())
        .ok_or("sh_addr lies in no loadable segment")?;
    if code && !load.executable {
        return Err("code (SHF_EXECINSTR) in a segment that is not executable (PF_X)");
    }
    let region = part(load, range, section.name).ok_or("its segment has no bytes there")?;
    let skew = range.start().0.wrapping_sub(load.range.start().0);
    let odd = if load.file_offset.wrapping_add(skew) != section.offset {
        Some("sh_offset is not where its segment (p_offset) has the bytes; the segment is used")
    } else if region.range != range {
        Some("it reaches behind the end of its segment and is cut off there")
    } else {
        None
    };
    Ok((region, odd))
}

/// Sorts by address and lets each region start where the one before has ended.
fn make_disjoint(regions: &mut Vec<Region<'_>>, warnings: &mut Vec<Warning>) {
    regions.sort_by_key(|region| (region.range.start(), region.range.end()));
    let mut covered = Address(0);
    regions.retain_mut(|region| {
        let (start, end) = (region.range.start(), region.range.end());
        if start < covered {
            warnings.push(Warning::new(
                region.name.to_owned(),
                format!("it overlaps another section, which is used up to {covered}"),
            ));
            let skipped = usize::try_from(covered.0 - start.0).unwrap_or(usize::MAX);
            region.bytes = region.bytes.get(skipped..).unwrap_or_default();
            region.range = Range::new(covered, end).unwrap_or_default();
        }
        covered = covered.max(end);
        !region.range.is_empty()
    });
}

/// Segments that are not writable, PT_GNU_RELRO, and sections that compilers make for data that
/// only the loader writes.
fn constants<'data>(segments: &Segments<'data>, sections: &Sections<'data>) -> Vec<Region<'data>> {
    let fixed = segments.loads().iter().filter(|load| !load.writable);
    let mut regions: Vec<_> = fixed
        .filter_map(|load| part(load, load.file_range(), ""))
        .collect();
    let read_only_after_relocation = segments.of_type(elf::PT_GNU_RELRO).take(1);
    let protected = read_only_after_relocation.filter_map(|(_, header)| {
        let range = Range::sized(Address(header.p_vaddr.get(LE)), header.p_memsz.get(LE))?;
        Range::new(range.start(), Address(range.end().0 & !(PAGE - 1)))
    });
    let by_name = sections.all().iter().filter(|section| {
        section.name == ".data.rel.ro" || section.name.starts_with(".data.rel.ro.")
    });
    for range in protected.chain(by_name.filter_map(SectionHeader::range)) {
        let load = segments.load_at(range.start()).filter(|load| load.writable);
        regions.extend(load.and_then(|load| part(load, range, "")));
    }
    make_disjoint(&mut regions, &mut Vec::new());
    regions
}
