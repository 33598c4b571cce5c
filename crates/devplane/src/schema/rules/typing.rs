//! Whether an expression makes sense: all names are known and all types fit. It is made ready for running on the way.
//! Never here: values.

use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, SelectExpr, SourceInfo, operators,
};
use cel::common::types::CelString;

use super::super::{ListType, Schema, formats, patterns};
use super::signatures::{is_qualified, signatures};
use super::types::{Bindings, Ty};

/// Types that expressions may name.
const TYPE_NAMES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

/// Checks expressions.
pub(super) struct Typing<'s, 'i> {
    source: &'i SourceInfo,
    /// Variables, the innermost last.
    scope: Vec<(String, Ty<'s>)>,
    /// Where something is wrong, and what.
    errors: Vec<(u32, String)>,
    /// Whether `oldSelf` is named.
    pub(super) uses_old: bool,
}

impl<'s, 'i> Typing<'s, 'i> {
    pub(super) fn new(source: &'i SourceInfo, scope: Vec<(String, Ty<'s>)>) -> Self {
        Typing { source, scope, errors: Vec::new(), uses_old: false }
    }

    /// What was wrong, in the form that compilers of this language have.
    pub(super) fn complaints(&self) -> Option<String> {
        let mut errors = self.errors.clone();
        errors.sort_by_key(|(offset, _)| *offset);
        let texts: Vec<String> = errors.iter().map(|(offset, text)| self.complaint(*offset, text)).collect();
        if texts.is_empty() { None } else { Some(texts.join("\n")) }
    }

    fn complaint(&self, offset: u32, text: &str) -> String {
        let mut offset = usize::try_from(offset).unwrap_or_default();
        for (index, line) in self.source.source.split('\n').enumerate() {
            let length = line.chars().count();
            if offset <= length {
                let dots = ".".repeat(offset);
                let (row, column) = (index + 1, offset + 1);
                return format!("ERROR: <input>:{row}:{column}: {text}\n | {line}\n | {dots}^");
            }
            offset -= length + 1;
        }
        format!("ERROR: <input>:1:1: {text}")
    }

    fn wrong(&mut self, id: u64, text: String) -> Ty<'s> {
        let offset = self.source.offset_for(id).map_or(0, |(start, _)| start);
        if !self.errors.contains(&(offset, text.clone())) {
            self.errors.push((offset, text));
        }
        Ty::Error
    }

    /// The type of an expression.
    pub(super) fn expression(&mut self, node: &mut IdedExpr) -> Ty<'s> {
        let id = node.id;
        match &mut node.expr {
            Expr::Literal(literal) => literal_type(literal),
            Expr::Ident(name) => {
                let name = name.clone();
                self.identifier(id, &name)
            }
            Expr::Select(select) => {
                let operand = self.expression(&mut select.operand);
                let field = select.field.clone();
                let is_open = matches!(operand, Ty::Dyn);
                let found = self.field(id, operand, &field);
                let found = if select.test && !matches!(found, Ty::Error) { Ty::Bool } else { found };
                if is_open {
                    node.expr = open_select(select, id);
                }
                found
            }
            Expr::Call(call) => self.call(id, call),
            Expr::List(list) => self.list(list),
            Expr::Map(map) => {
                let mut known = (Ty::Dyn, Ty::Dyn);
                for entry in &mut map.entries {
                    let EntryExpr::MapEntry(entry) = &mut entry.expr else { continue };
                    let key = self.expression(&mut entry.key);
                    let value = self.expression(&mut entry.value);
                    known =
                        (self.same(entry.key.id, known.0, key), self.same(entry.value.id, known.1, value));
                }
                Ty::Map(Box::new(known.0), Box::new(known.1))
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(message) => {
                let text = format!("undeclared reference to '{}' (in container '')", message.type_name);
                self.wrong(id, text)
            }
            Expr::Unspecified => Ty::Error,
        }
    }

    fn identifier(&mut self, id: u64, name: &str) -> Ty<'s> {
        if let Some((_, ty)) = self.scope.iter().rev().find(|(known, _)| known == name) {
            let ty = ty.clone();
            self.uses_old |= name == "oldSelf";
            return ty;
        }
        if TYPE_NAMES.contains(&name) {
            return Ty::Type;
        }
        self.wrong(id, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn field(&mut self, id: u64, operand: Ty<'s>, field: &str) -> Ty<'s> {
        match operand {
            Ty::Object(schema) => match Ty::of_field(schema, field) {
                Some(ty) => ty,
                None => self.wrong(id, format!("undefined field '{field}'")),
            },
            Ty::Record(record) => match record.fields.iter().rev().find(|(name, _)| name == field) {
                Some((_, ty)) => ty.clone(),
                None => self.wrong(id, format!("undefined field '{field}'")),
            },
            Ty::Map(_, value) => *value,
            Ty::Dyn => Ty::Dyn,
            Ty::Error => Ty::Error,
            Ty::Optional(inner) => match self.field(id, *inner, field) {
                optional @ (Ty::Optional(_) | Ty::Error) => optional,
                ty => Ty::Optional(Box::new(ty)),
            },
            Ty::Bool | Ty::Int | Ty::Uint | Ty::Double | Ty::String | Ty::Bytes | Ty::Null => {
                self.wrong(id, format!("type '{operand}' does not support field selection"))
            }
            Ty::Named(_) | Ty::Param(_) | Ty::List(..) | Ty::Type => {
                self.wrong(id, format!("type '{operand}' does not support field selection"))
            }
        }
    }

    fn list(&mut self, list: &mut ListExpr) -> Ty<'s> {
        let mut known = Ty::Dyn;
        for (index, element) in list.elements.iter_mut().enumerate() {
            let mut ty = self.expression(element);
            if list.optional_indices.contains(&index)
                && let Ty::Optional(inner) = ty
            {
                ty = *inner;
            }
            known = self.same(element.id, known, ty);
        }
        Ty::List(Box::new(known), ListType::Atomic)
    }

    /// Literals hold one type.
    fn same(&mut self, id: u64, known: Ty<'s>, given: Ty<'s>) -> Ty<'s> {
        if matches!(known, Ty::Dyn | Ty::Error) {
            return given;
        }
        if !Bindings::default().fits(&known, &given) {
            self.wrong(id, format!("expected type '{known}' but found '{given}'"));
        }
        known
    }

    fn comprehension(&mut self, comprehension: &mut ComprehensionExpr) -> Ty<'s> {
        let range = self.expression(&mut comprehension.iter_range);
        let elements = match range.elements() {
            Some(elements) => elements,
            None => {
                let text = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                let start = leftmost(&comprehension.iter_range);
                self.wrong(start, text)
            }
        };
        let start = self.expression(&mut comprehension.accu_init);
        self.scope.push((comprehension.accu_var.clone(), start));
        self.scope.push((comprehension.iter_var.clone(), elements));
        self.expression(&mut comprehension.loop_cond);
        let step = self.expression(&mut comprehension.loop_step);
        self.scope.pop();
        self.scope.pop();
        self.scope.push((comprehension.accu_var.clone(), step));
        let result = self.expression(&mut comprehension.result);
        self.scope.pop();
        result
    }

    fn call(&mut self, id: u64, call: &mut CallExpr) -> Ty<'s> {
        match (&*call.func_name, &mut *call.args) {
            (operators::LOGICAL_AND | operators::LOGICAL_OR, [left, right]) => {
                for side in [left, right] {
                    let ty = self.expression(side);
                    if !Bindings::default().fits(&Ty::Bool, &ty) {
                        self.wrong(side.id, format!("expected type 'bool' but found '{ty}'"));
                    }
                }
                return Ty::Bool;
            }
            (operators::OPT_SELECT, [operand, field]) => {
                let operand = self.expression(operand);
                let Expr::Literal(LiteralValue::String(field)) = &field.expr else { return Ty::Error };
                let field = field.inner().to_owned();
                return match self.field(id, operand, &field) {
                    optional @ (Ty::Optional(_) | Ty::Error) => optional,
                    ty => Ty::Optional(Box::new(ty)),
                };
            }
            _ => {}
        }
        self.qualify(call);
        let receiver = call.target.as_mut().map(|target| self.expression(target));
        let arguments: Vec<Ty<'s>> = if let ("format", [IdedExpr { expr: Expr::List(list), .. }]) =
            (&*call.func_name, &mut *call.args)
        {
            // The one list that may hold values of several types.
            for element in &mut list.elements {
                self.expression(element);
            }
            vec![Ty::List(Box::new(Ty::Dyn), ListType::Atomic)]
        } else {
            call.args.iter_mut().map(|argument| self.expression(argument)).collect()
        };
        let known = signatures(&call.func_name);
        if known.is_empty() {
            return self.wrong(id, format!("undeclared reference to '{}' (in container '')", call.func_name));
        }
        // Indexing into what may be missing may be missing.
        if let (operators::INDEX | operators::OPT_INDEX, [Ty::Optional(inner), index]) =
            (&*call.func_name, &*arguments)
        {
            let inner = [(**inner).clone(), index.clone()];
            return match overload(operators::INDEX, None, &inner) {
                Some(ty) => Ty::Optional(Box::new(ty)),
                None => self.no_overload(id, call, receiver.as_ref(), &arguments),
            };
        }
        let Some(result) = overload(&call.func_name, receiver.as_ref(), &arguments) else {
            return self.no_overload(id, call, receiver.as_ref(), &arguments);
        };
        self.literals(call);
        let is_keyed = |ty: &Ty<'_>| matches!(ty, Ty::List(_, ListType::Map));
        if call.func_name == operators::ADD && arguments.iter().any(is_keyed) {
            return self.wrong(id, "lists with x-kubernetes-list-type=map cannot be added here".to_owned());
        }
        prepare(call, &arguments);
        result
    }

    /// `ip.isCanonical(x)` is a function, unless there is a variable of the name in front.
    fn qualify(&mut self, call: &mut CallExpr) {
        let Some(target) = &call.target else { return };
        let Expr::Ident(namespace) = &target.expr else { return };
        if self.scope.iter().any(|(name, _)| name == namespace) {
            return;
        }
        let name = format!("{namespace}.{}", call.func_name);
        if is_qualified(&name) {
            call.func_name = name;
            call.target = None;
        }
    }

    fn no_overload(
        &mut self,
        id: u64,
        call: &CallExpr,
        receiver: Option<&Ty<'s>>,
        arguments: &[Ty<'s>],
    ) -> Ty<'s> {
        let list: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let receiver = receiver.map(|receiver| format!("{receiver}.")).unwrap_or_default();
        let (name, list) = (&call.func_name, list.join(", "));
        self.wrong(id, format!("found no matching overload for '{name}' applied to '{receiver}({list})'"))
    }

    /// Constants that functions cannot take.
    fn literals(&mut self, call: &CallExpr) {
        let Some(last) = call.args.last() else { return };
        let Expr::Literal(LiteralValue::String(text)) = &last.expr else { return };
        let is_right = match &*call.func_name {
            "matches" => patterns::regex(text.inner()).is_ok(),
            "duration" => formats::is_go_duration(text.inner()),
            "timestamp" => formats::is_date_time(text.inner()),
            _ => true,
        };
        if !is_right {
            let id = last.id;
            self.wrong(id, format!("invalid {} argument", call.func_name));
        }
    }
}

/// The type of what a function returns for arguments, if it takes them.
fn overload<'s>(name: &str, receiver: Option<&Ty<'s>>, arguments: &[Ty<'s>]) -> Option<Ty<'s>> {
    let mut results = Vec::new();
    for signature in signatures(name) {
        let mut bindings = Bindings::default();
        let receives = match (&signature.receiver, receiver) {
            (Some(wanted), Some(given)) => bindings.fits(wanted, given),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let takes = receives
            && signature.arguments.len() == arguments.len()
            && signature.arguments.iter().zip(arguments).all(|(wanted, given)| bindings.fits(wanted, given));
        if takes {
            results.push(bindings.resolve(&signature.result));
        }
    }
    let mut results = results.into_iter();
    let first = results.next()?;
    // With arguments of any type several may fit, and what comes back is known when the rule is run.
    let same = results.all(|other| std::mem::discriminant(&other) == std::mem::discriminant(&first));
    Some(if same { first } else { Ty::Dyn })
}

/// Renames calls that mean something else here than in the interpreter.
fn prepare(call: &mut CallExpr, arguments: &[Ty<'_>]) {
    let unordered = |ty: &Ty<'_>| matches!(ty, Ty::List(_, ListType::Set | ListType::Map));
    match &*call.func_name {
        // Patterns are compiled once, and as Kubernetes reads them.
        "matches" => {
            let target = call.target.take().map(|target| *target);
            call.args.splice(0..0, target);
            call.func_name = "@matches".to_owned();
        }
        operators::INDEX if matches!(arguments, [Ty::Dyn, _]) => call.func_name = "@select".to_owned(),
        operators::ADD if arguments.iter().any(unordered) => call.func_name = "@union".to_owned(),
        operators::EQUALS if arguments.iter().any(unordered) => call.func_name = "@sameItems".to_owned(),
        operators::NOT_EQUALS if arguments.iter().any(unordered) => call.func_name = "@otherItems".to_owned(),
        _ => {}
    }
}

/// The same for what may be no object at all.
fn open_select(select: &mut SelectExpr, id: u64) -> Expr {
    let operand = std::mem::take(&mut *select.operand);
    let field = CelString::from(std::mem::take(&mut select.field));
    let field = IdedExpr { id, expr: Expr::Literal(LiteralValue::String(field)) };
    let func_name = if select.test { "@has" } else { "@select" }.to_owned();
    Expr::Call(CallExpr { func_name, target: None, args: vec![operand, field] })
}

fn leftmost(node: &IdedExpr) -> u64 {
    match &node.expr {
        Expr::Select(select) => leftmost(&select.operand),
        Expr::Call(CallExpr { target: Some(target), .. }) => leftmost(target),
        Expr::Call(_) | Expr::Comprehension(_) | Expr::Ident(_) | Expr::List(_) | Expr::Literal(_) => node.id,
        Expr::Map(_) | Expr::Struct(_) | Expr::Unspecified => node.id,
    }
}

fn literal_type<'s>(literal: &LiteralValue) -> Ty<'s> {
    match literal {
        LiteralValue::Boolean(_) => Ty::Bool,
        LiteralValue::Bytes(_) => Ty::Bytes,
        LiteralValue::Double(_) => Ty::Double,
        LiteralValue::Int(_) => Ty::Int,
        LiteralValue::Null => Ty::Null,
        LiteralValue::String(_) => Ty::String,
        LiteralValue::UInt(_) => Ty::Uint,
    }
}

/// The variables of a rule on values of a schema.
pub(super) fn scope(schema: &Schema, optional_old: bool) -> Option<Vec<(String, Ty<'_>)>> {
    let own = Ty::of_schema(schema)?;
    let old = if optional_old { Ty::Optional(Box::new(own.clone())) } else { own.clone() };
    Some(vec![("self".to_owned(), own), ("oldSelf".to_owned(), old)])
}
