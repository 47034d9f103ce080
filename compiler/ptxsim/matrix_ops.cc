// ldmatrix and stmatrix: 8 x 8 tiles of 16-bit elements between shared memory
// and the fragments of a warp.
//
// Lane l holds elements 2 * (l % 4) and the next of row l / 4, or with .trans
// of column l / 4. Row r of tile t starts at the address of lane 8 * t + r.
#include <cstdint>
#include <cstring>

#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/memory_access.h"
#include "compiler/ptxsim/opcode_list.h"
#include "compiler/ptxsim/state_space.h"

namespace regatta::ptxsim {
namespace {

constexpr int kRowBytes = 16;
constexpr int kAddress = 0;  // the fragments follow
constexpr uint8_t kTransposed = 1;

// The rows of all tiles; false after a fault.
bool Rows(const Instruction& in, WarpContext& warp, AccessKind kind,
          LanePointers& rows) {
  const LaneAddresses at = AddressesOf(in, warp, kAddress);
  const int lanes = 8 * in.vector;
  const uint32_t mask = lanes == 32 ? ~0u : (1u << lanes) - 1;
  return AccessMemory(warp, in.space, mask, at, kRowBytes, kind, rows);
}

// The two elements of a lane, as places in the tile's rows.
struct Elements {
  int row[2];
  int column[2];
};
Elements ElementsOf(int lane, bool transposed) {
  const int major = lane / 4;
  const int minor = 2 * (lane % 4);
  if (transposed) return {{minor, minor + 1}, {major, major}};
  return {{major, major}, {minor, minor + 1}};
}

void LoadMatrix(const Instruction& in, WarpContext& warp) {
  LanePointers rows;
  if (!Rows(in, warp, AccessKind::kRead, rows)) return;
  for (int tile = 0; tile < in.vector; ++tile) {
    uint32_t* to = Cells32(warp, in.operand[kAddress + 1 + tile]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const Elements e = ElementsOf(lane, (in.mode & kTransposed) != 0);
      uint16_t part[2];
      for (int i = 0; i < 2; ++i) {
        std::memcpy(&part[i],
                    rows.pointer[8 * tile + e.row[i]] + 2 * e.column[i], 2);
      }
      to[lane] = part[0] | (uint32_t{part[1]} << 16);
    }
  }
}

void StoreMatrix(const Instruction& in, WarpContext& warp) {
  LanePointers rows;
  if (!Rows(in, warp, AccessKind::kWrite, rows)) return;
  for (int tile = 0; tile < in.vector; ++tile) {
    const uint32_t* from = Cells32(warp, in.operand[kAddress + 1 + tile]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const Elements e = ElementsOf(lane, (in.mode & kTransposed) != 0);
      for (int i = 0; i < 2; ++i) {
        const uint16_t part = static_cast<uint16_t>(from[lane] >> (16 * i));
        std::memcpy(rows.pointer[8 * tile + e.row[i]] + 2 * e.column[i], &part,
                    2);
      }
    }
  }
}

void DecodeMatrix(InstructionBuilder& b, bool store) {
  b.RequireOperands(2, 2);
  Instruction& in = b.out();
  in.kind = InstructionClass::kLoadMatrix;
  in.flow = Flow::kConverged;
  if (!b.Take(".sync") || !b.Take(".aligned") || !b.Take(".m8n8")) {
    return b.Fail("is supported as .sync.aligned.m8n8");
  }
  const auto count = b.TakeOneOf({".x1", ".x2", ".x4"});
  if (!count.has_value()) return b.Fail("needs .x1, .x2 or .x4");
  in.vector = static_cast<uint8_t>(1 << *count);
  in.mode = b.Take(".trans") ? kTransposed : 0;
  in.space = TakeSpace(b);
  if (in.space != Space::kShared && in.space != Space::kGeneric) {
    return b.Fail("works on shared memory");
  }
  if (b.TakeType() != Type::kB16) return b.Fail("is supported for .b16");
  const auto fragments = b.Elements(store ? 1 : 0);
  if (fragments.size() != in.vector) {
    return b.Fail("as many registers as there are tiles are needed");
  }
  b.Address(kAddress, store ? 0 : 1);
  for (size_t i = 0; i < fragments.size(); ++i) {
    const int place = kAddress + 1 + static_cast<int>(i);
    if (store) {
      b.SourceOf(place, fragments[i], Type::kB32);
    } else {
      b.DestinationOf(place, fragments[i], Type::kB32);
    }
  }
  if (!store) {
    in.late_first = kAddress + 1;
    in.late_count = in.vector;
  }
  in.run = store ? StoreMatrix : LoadMatrix;
}

void DecodeLoadMatrix(InstructionBuilder& b) { DecodeMatrix(b, false); }
void DecodeStoreMatrix(InstructionBuilder& b) { DecodeMatrix(b, true); }

// Lane l's two elements of row l / 4 become those of column l / 4.
void MoveMatrix(const Instruction& in, WarpContext& warp) {
  const uint32_t* from = Cells32(warp, in.operand[1]);
  alignas(64) uint32_t out[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    const Elements e = ElementsOf(lane, true);
    out[lane] = 0;
    for (int i = 0; i < 2; ++i) {
      const uint32_t word = from[4 * e.row[i] + e.column[i] / 2];
      out[lane] |= ((word >> (16 * (e.column[i] % 2))) & 0xFFFF) << (16 * i);
    }
  }
  Commit(warp, in.operand[0], out);
}

void DecodeMoveMatrix(InstructionBuilder& b) {
  b.RequireOperands(2, 2);
  b.out().kind = InstructionClass::kWarp;
  b.out().flow = Flow::kConverged;
  if (!b.Take(".sync") || !b.Take(".aligned") || !b.Take(".m8n8") ||
      !b.Take(".trans") || b.TakeType() != Type::kB16) {
    return b.Fail("is supported as .sync.aligned.m8n8.trans.b16");
  }
  b.out().run = MoveMatrix;
  b.Destination(0, 0, Type::kB32);
  b.Source(1, 1, Type::kB32);
}

}  // namespace

OpcodeSpan MatrixOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {{"ldmatrix", DecodeLoadMatrix},
                                             {"stmatrix", DecodeStoreMatrix},
                                             {"movmatrix", DecodeMoveMatrix}};
  return kEntries;
}

}  // namespace regatta::ptxsim
