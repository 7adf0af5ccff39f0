//! Values in steps of bounded relative width: each octave is cut into `1 << BITS` steps of equal width, and values below
//! that many have a step of their own each. A step's middle is within one part in `2 << BITS` of every value in it.

/// The step of a value.
#[must_use]
pub const fn step_of<const BITS: u32>(value: u64) -> u16 {
    if value < 1 << BITS {
        return value as u16;
    }
    let octave = 63 - value.leading_zeros();
    let within = (value >> (octave - BITS)) & ((1 << BITS) - 1);
    (((octave - BITS + 1) << BITS) as u16) + within as u16
}

/// The lowest and the highest value of a step.
#[must_use]
pub fn range_of<const BITS: u32>(step: u16) -> (u64, u64) {
    if u64::from(step) < 1 << BITS {
        return (u64::from(step), u64::from(step));
    }
    let (octave, within) = (u32::from(step >> BITS) + BITS - 1, u128::from(step) & ((1 << BITS) - 1));
    let low = ((1 << BITS) + within) << (octave - BITS);
    let end = low + (1 << (octave - BITS));
    (u64::try_from(low).unwrap_or(u64::MAX), u64::try_from(end - 1).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<const BITS: u32>(value: u64) {
        let step = step_of::<BITS>(value);
        let (low, high) = range_of::<BITS>(step);
        assert!(low <= value && value <= high, "{value} in {low} to {high}");
        assert_eq!((step_of::<BITS>(low), step_of::<BITS>(high)), (step, step));
        assert!(high - low <= low >> BITS, "{low} to {high} is too wide");
        if let Some(next) = high.checked_add(1) {
            assert_eq!(step_of::<BITS>(next), step + 1, "steps follow each other without a gap");
        }
    }

    proptest! {
        #[test]
        fn a_step_holds_its_value_and_is_of_bounded_width(value in prop_oneof![0_u64..5000, any::<u64>()]) {
            check::<2>(value);
            check::<4>(value);
        }
    }
}
