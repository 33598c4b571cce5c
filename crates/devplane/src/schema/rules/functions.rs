//! Functions of rules that the interpreter does not have. Never here: which of them rules may call.

use std::any::Any;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelOptional, CelString, DYN_TYPE, LIST_TYPE, Type,
};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload, extensions};
use regex::Regex;

use super::super::{names, patterns};
use super::{net, times};

/// Patterns that are kept compiled. Those that rules give as text are far fewer.
const PATTERNS: usize = 256;

/// Everything that rules are run with.
pub(super) fn env() -> &'static Arc<Env> {
    static ENV: OnceLock<Arc<Env>> = OnceLock::new();
    ENV.get_or_init(|| {
        let mut env = Env::stdlib();
        declare(&mut env).expect("no function is declared twice");
        Arc::new(env)
    })
}

fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_extension(extensions::strings)?;
    env.add_extension(extensions::lists)?;
    times::declare(env)?;
    net::declare(env)?;
    add_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>, name = "@matches")?;
    add_member_overload!(env, fn find: (CelString, CelString) -> Result<CelString>)?;
    add_member_overload!(env, fn find_all: (CelString, CelString) -> Result<CelList>)?;
    add_member_overload!(env, fn find_some: (CelString, CelString, CelInt) -> Result<CelList>, name = "findAll")?;
    let pair = || vec![DYN_TYPE, DYN_TYPE];
    env.add_overload("@sameItems", "same_items", pair(), |lists| decided(same_items(&lists)?))?;
    env.add_overload("@otherItems", "other_items", pair(), |lists| decided(!same_items(&lists)?))?;
    env.add_overload("@union", "union", pair(), |lists| {
        let (one, other) = two(&lists)?;
        let new = other.iter().filter(|item| !has(one, item.as_ref()));
        Ok(CowVal::owned(CelList::from(one.iter().chain(new).cloned().collect::<Vec<_>>())))
    })?;
    env.add_overload("sets.contains", "sets_contains", pair(), |lists| {
        let (all, some) = two(&lists)?;
        decided(some.iter().all(|item| has(all, item.as_ref())))
    })?;
    env.add_overload("sets.equivalent", "sets_equivalent", pair(), |lists| {
        let (one, other) = two(&lists)?;
        decided(
            one.iter().all(|item| has(other, item.as_ref()))
                && other.iter().all(|item| has(one, item.as_ref())),
        )
    })?;
    env.add_overload("sets.intersects", "sets_intersects", pair(), |lists| {
        let (one, other) = two(&lists)?;
        decided(one.iter().any(|item| has(other, item.as_ref())))
    })?;
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], |lists| {
        decided(
            list(&lists, 0)?
                .is_sorted_by(|one, other| order(one.as_ref(), other.as_ref()) != Some(Ordering::Greater)),
        )
    })?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], |lists| {
        extreme(lists, "max", Ordering::Greater)
    })?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], |lists| {
        extreme(lists, "min", Ordering::Less)
    })?;
    env.add_member_overload("indexOf", "list_index_of", LIST_TYPE, vec![DYN_TYPE], |arguments| {
        let at = list(&arguments, 0)?.iter().position(|item| item.equals(arguments[1].as_ref()));
        index(at)
    })?;
    env.add_member_overload("lastIndexOf", "list_last_index_of", LIST_TYPE, vec![DYN_TYPE], |arguments| {
        let at = list(&arguments, 0)?.iter().rposition(|item| item.equals(arguments[1].as_ref()));
        index(at)
    })?;
    env.add_overload("@select", "select", pair(), select)?;
    env.add_overload("@has", "has", pair(), |arguments| match select(arguments) {
        Ok(_) => decided(true),
        Err(ExecutionError::NoSuchKey(_)) => decided(false),
        Err(error) => Err(error),
    })?;
    formats(env)
}

/// A field or an element of something whose type is not known. What can have none has none.
fn select<'b, 'v>(mut arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let (Some(key), Some(owner)) = (arguments.pop(), arguments.pop()) else {
        return Err(ExecutionError::function_error("select", "no such overload"));
    };
    let missing = || {
        let name = key.downcast_ref::<CelString<'_>>().map(|name| name.inner().to_owned());
        let index = || key.downcast_ref::<CelInt>().map(|index| index.inner().to_string());
        ExecutionError::NoSuchKey(Arc::new(name.or_else(index).unwrap_or_default()))
    };
    match owner {
        CowVal::Borrowed(owner) => owner.as_indexer().ok_or_else(missing)?.get(&*key),
        CowVal::Owned(owner) => {
            let found = owner.as_indexer().ok_or_else(missing)?.get(&*key)?;
            Ok(CowVal::Owned(found.into_owned()))
        }
    }
}

/// A pattern, compiled at most once as long as there are not too many.
fn pattern(text: &str) -> Result<Regex, ExecutionError> {
    static KNOWN: Mutex<BTreeMap<String, Regex>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(regex) = known.get(text) {
        return Ok(regex.clone());
    }
    let regex = patterns::regex(text).map_err(|why| ExecutionError::function_error("matches", why))?;
    if known.len() < PATTERNS {
        known.insert(text.to_owned(), regex.clone());
    }
    Ok(regex)
}

fn matches(text: &CelString<'_>, regex: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(pattern(regex.inner())?.is_match(text.inner()).into())
}

fn find<'v>(text: &CelString<'_>, regex: &CelString<'_>) -> Result<CelString<'v>, ExecutionError> {
    let found = pattern(regex.inner())?.find(text.inner()).map(|found| found.as_str().to_owned());
    Ok(CelString::from(found.unwrap_or_default()))
}

fn find_all<'v>(text: &CelString<'_>, regex: &CelString<'_>) -> Result<CelList<'v>, ExecutionError> {
    find_some(text, regex, &CelInt::from(-1))
}

fn find_some<'v>(
    text: &CelString<'_>,
    regex: &CelString<'_>,
    most: &CelInt,
) -> Result<CelList<'v>, ExecutionError> {
    let most = usize::try_from(*most.inner()).unwrap_or(usize::MAX);
    let regex = pattern(regex.inner())?;
    let found = regex.find_iter(text.inner()).take(most);
    Ok(strings(found.map(|found| found.as_str().to_owned())))
}

fn strings<'v>(items: impl Iterator<Item = String>) -> CelList<'v> {
    let boxed = |item| Box::new(CelString::from(item)) as Box<dyn Val + 'v>;
    CelList::from(items.map(boxed).collect::<Vec<_>>())
}

fn decided<'b, 'v>(answer: bool) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(CelBool::from(answer)))
}

fn index<'b, 'v>(at: Option<usize>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    Ok(CowVal::owned(CelInt::from(at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))))
}

type Items<'a, 'v> = &'a [Box<dyn Val + 'v>];

fn list<'a, 'v>(arguments: &'a [CowVal<'_, 'v>], at: usize) -> Result<Items<'a, 'v>, ExecutionError> {
    let list = arguments[at].downcast_ref::<CelList<'v>>();
    list.map(CelList::inner).ok_or_else(|| ExecutionError::function_error("list", "no such overload"))
}

fn two<'a, 'v>(arguments: &'a [CowVal<'_, 'v>]) -> Result<(Items<'a, 'v>, Items<'a, 'v>), ExecutionError> {
    Ok((list(arguments, 0)?, list(arguments, 1)?))
}

fn has(items: Items<'_, '_>, item: &dyn Val) -> bool {
    items.iter().any(|other| other.equals(item))
}

/// Sets and maps are equal whatever their order.
fn same_items(arguments: &[CowVal<'_, '_>]) -> Result<bool, ExecutionError> {
    let (one, other) = two(arguments)?;
    Ok(one.len() == other.len() && one.iter().all(|item| has(other, item.as_ref())))
}

fn order(one: &dyn Val, other: &dyn Val) -> Option<Ordering> {
    one.as_comparer()?.compare(other).ok()
}

fn extreme<'b, 'v>(
    lists: Vec<CowVal<'b, 'v>>,
    name: &str,
    wanted: Ordering,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let mut items = list(&lists, 0)?.iter();
    let empty = || ExecutionError::function_error(name, format!("{name} called on empty list"));
    let mut best = items.next().ok_or_else(empty)?;
    for item in items {
        if order(item.as_ref(), best.as_ref()) == Some(wanted) {
            best = item;
        }
    }
    Ok(CowVal::Owned(best.clone()))
}

fn sum<'b, 'v>(lists: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let items = list(&lists, 0)?;
    if items.iter().any(|item| item.downcast_ref::<CelDouble>().is_some()) {
        let numbers = items.iter().filter_map(|item| item.downcast_ref::<CelDouble>());
        return Ok(CowVal::owned(CelDouble::from(numbers.map(|number| *number.inner()).sum::<f64>())));
    }
    let numbers = items.iter().filter_map(|item| item.downcast_ref::<CelInt>());
    let sum = numbers.map(|number| *number.inner()).try_fold(0_i64, i64::checked_add);
    let sum = sum.ok_or_else(|| ExecutionError::function_error("sum", "integer overflow"))?;
    Ok(CowVal::owned(CelInt::from(sum)))
}

static FORMAT: Type = Type::new_unspecified_type("kubernetes.NamedFormat");

/// A format that has a name.
#[derive(Clone, Copy, Debug)]
struct Format(&'static str, fn(&str) -> Vec<String>);

impl Val for Format {
    fn get_type(&self) -> &Type {
        &FORMAT
    }
    fn cel_type() -> &'static Type {
        &FORMAT
    }
    fn equals(&self, other: &dyn Val) -> bool {
        other.downcast_ref::<Format>().is_some_and(|other| other.0 == self.0)
    }
    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(*self)
    }
    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Format {}

/// Declares the formats, and how they are asked.
macro_rules! formats {
    ($env:ident, $($name:literal => $check:path),+ $(,)?) => {
        $($env.add_overload($name, $name, vec![], |_| Ok(CowVal::owned(Format($name, $check))))?;)+
    };
}

fn formats(env: &mut Env) -> Result<(), DeclarationError> {
    formats!(
        env,
        "format.dns1035Label" => names::label_1035,
        "format.dns1123Label" => names::label_1123,
        "format.dns1123Subdomain" => names::subdomain_1123,
        "format.labelValue" => names::label_value,
        "format.qualifiedName" => names::qualified,
    );
    add_member_overload!(env, fn validate: (Format, CelString) -> CelOptional)
}

/// Nothing where all is right.
fn validate<'v>(format: &Format, text: &CelString<'_>) -> CelOptional<'v> {
    let wrong = (format.1)(text.inner());
    if wrong.is_empty() { CelOptional::none() } else { CelOptional::of(Box::new(strings(wrong.into_iter()))) }
}
