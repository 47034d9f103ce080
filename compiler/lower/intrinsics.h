// Operations that a device has and its language has not as an operator:
// statements with a name and operands (Stmt::Kind::kIntrinsic). The verifier
// and the interpreter of the tests know them from here; a dialect emits those
// that its devices have and refuses the rest.
//
// To add one: a line in intrinsics.cc, its meaning in the interpreter of the
// tests, and its text in the dialects that have it.
#ifndef REGATTA_COMPILER_LOWER_INTRINSICS_H_
#define REGATTA_COMPILER_LOWER_INTRINSICS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/lower/loop_ir.h"
#include "compiler/target/target.h"

namespace regatta::loop {

// A copy of 16, 8 or 4 bytes from global to local memory that runs on by
// itself:
//   copy_async_16(local element, global element)
// Both are aligned to its size, in buffers of one type; the global one may be
// guarded. Copies that a thread has begun since its last commit_async() become
// one batch; wait_async(n) waits until at most the newest n batches of the
// thread are still on their way. Until then nothing may touch the destination;
// after it the thread itself sees what was copied, and after a barrier its
// group.
std::string CopyAsync(int64_t bytes);
inline constexpr std::string_view kCommitAsync = "commit_async";
inline constexpr std::string_view kWaitAsync = "wait_async";

// The same in two halves through words of a fragment, for devices without:
//   load_words_16(fragment, global element), guarded like a copy
//   store_words_16(local element, fragment)
std::string LoadWords(int64_t bytes);
std::string StoreWords(int64_t bytes);

// Threads of a warp: 32 neighbours of a group, numbered as its threads are.
inline constexpr int kWarp = 32;

// Matrices of 8 rows of 16 bytes, from local memory to fragments of a warp:
//   load_matrix_x4(fragment, local element)
// Lane 8*i+r gives the address of row r of matrix i; lane l gets, as word i of
// the fragment, the 4 bytes number l % 4 of row l / 4 of matrix i. `turned`,
// for types of 16 bits: the elements (2 * (l % 4), l / 4) and the one below it.
// The same for one and two matrices; addresses of the lanes beyond are not
// used.
std::string LoadMatrix(int matrices, bool turned);

// A product of matrices that a warp keeps in fragments, added to f32 or i32
// registers:
//   mma_f16x16x8x16(accumulators, a, b)
// c[rows][8] += a[rows][depth] b[depth][8] for a form of rows x 8 x depth
// (Target::products has those of a target). With E elements to a word, g =
// lane / 4, q = lane % 4 and 16 rows: word w of a has columns (w / 2) * 4E + qE
// on of row g + 8 (w % 2), word w of b rows 4Ew + qE on of column g, and
// accumulator i is c[g + 8 (i / 2)][2q + i % 2]. With 8 rows word w of a has
// columns 4Ew + qE on of row g. (PTX manual, "mma".)
std::string MultiplyMatrices(const ProductForm& form);
// The form that `name` has; absent for other intrinsics.
std::optional<ProductForm> MatrixForm(std::string_view name);

struct IntrinsicOperandRule {
  enum class Use { kReads, kWrites, kAccumulates };
  enum class Place { kNumber, kGlobal, kLocal, kRegister, kFragment };
  Place place = Place::kNumber;
  Use use = Use::kReads;
  int64_t bytes = 0;  // touched from the element on, and its alignment
  bool may_be_guarded = false;
  // Else the same for all operands that have none.
  std::optional<DType> dtype;
};

struct Intrinsic {
  std::string name;
  std::vector<IntrinsicOperandRule> operands;
  // All threads of a warp do it together: where barriers may stand.
  bool whole_warps = false;
};

// Null for an unknown name.
const Intrinsic* FindIntrinsic(std::string_view name);

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_INTRINSICS_H_
