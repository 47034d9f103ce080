// What programs may do with images (Buffer::image_row): what the hardware
// behind them can. Their elements stand row by row as in plain memory, so that
// offsets mean the same; what differs is how they are reached.
#ifndef REGATTA_COMPILER_LOWER_IMAGE_VERIFY_H_
#define REGATTA_COMPILER_LOWER_IMAGE_VERIFY_H_

#include "absl/status/status.h"
#include "compiler/lower/loop_ir.h"

namespace regatta::loop {

// OK, or Internal naming buffer and kernel. Checked: images are workspace of
// f32 or f16 with whole rows of whole pixels; they are touched in device
// kernels, in vector loops that cover whole pixels from a pixel's first element
// on; a kernel stores to an image or loads from it, not both; nothing
// accumulates in one. REQUIRES: Verify(program) is OK.
absl::Status VerifyImages(const Program& program);

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_IMAGE_VERIFY_H_
