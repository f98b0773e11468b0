//! Several things at once, for work that waits more than it computes.

use std::{
    collections::BTreeMap,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

/// Does something with each item, at most `at_once` at the same time; the results are in the order of the items.
pub fn concurrently<T: Sync, R: Send>(
    items: &[T],
    at_once: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut results = Vec::with_capacity(items.len());
    concurrently_in_order(items, at_once, work, |_, result| results.push(result));
    results
}

/// Does something with each item, at most `at_once` at the same time, and tells each result as soon as it is there and those
/// of all items before it are told.
pub fn concurrently_in_order<'i, T: Sync, R: Send>(
    items: &'i [T],
    at_once: usize,
    work: impl Fn(&T) -> R + Sync,
    mut tell: impl FnMut(&'i T, R),
) {
    if let [only] = items {
        return tell(only, work(only));
    }
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..at_once.min(items.len()) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(position) else {
                        break;
                    };
                    if sender.send((position, work(item))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut to_tell = items.iter().enumerate().peekable();
        for (position, result) in results {
            early.insert(position, result);
            while let Some((position, item)) = to_tell.peek()
                && let Some(result) = early.remove(position)
            {
                tell(item, result);
                to_tell.next();
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use super::*;

    #[test]
    fn results_are_told_in_order_and_before_the_last_one_is_there() {
        let told = (Mutex::new(vec![]), Condvar::new());
        let items: Vec<usize> = (0..40).collect();
        let work = |item: &usize| {
            if *item == 39 {
                // It ends only when all the others are told.
                let (told, changed) = &told;
                let told = told.lock().expect("unpoisoned");
                drop(changed.wait_while(told, |told| told.len() < 39));
            }
            item * 2
        };
        concurrently_in_order(&items, 4, work, |item, result| {
            told.0.lock().expect("unpoisoned").push((*item, result));
            told.1.notify_all();
        });
        let told = told.0.into_inner().expect("unpoisoned");
        let expected: Vec<_> = items.iter().map(|item| (*item, item * 2)).collect();
        assert_eq!(told, expected);
        assert!(concurrently(&[] as &[u8], 4, |item| *item).is_empty());
    }
}
