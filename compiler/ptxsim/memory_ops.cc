// ld, st, prefetch.
#include <cstdint>
#include <cstring>

#include "compiler/ptxsim/lanes.h"
#include "compiler/ptxsim/memory_access.h"
#include "compiler/ptxsim/opcode_list.h"
#include "compiler/ptxsim/state_space.h"

namespace regatta::ptxsim {
namespace {

constexpr int kAddressPlace = 0;       // the values follow
constexpr uint16_t kStrongAccess = 1;  // Instruction::flags

// Instruction: `vector` elements of `type`; mode: bytes of their registers.
// Signed elements are extended into wider registers.
template <typename Cell>
void LoadElements(const Instruction& in, WarpContext& warp,
                  const LanePointers& at) {
  const int bytes = TypeBytes(in.type);
  const int unused = 8 * (static_cast<int>(sizeof(Cell)) - bytes);
  const Cell keep =
      in.mode >= sizeof(Cell) ? ~Cell{0} : (Cell{1} << (8 * in.mode)) - 1;
  for (int i = 0; i < in.vector; ++i) {
    Cell* to =
        reinterpret_cast<Cell*>(warp.frame + in.operand[kAddressPlace + 1 + i]);
    ForEachLane(warp.mask, [&](int lane) {
      Cell value = 0;
      std::memcpy(&value, at.pointer[lane] + i * bytes, bytes);
      if (IsSigned(in.type)) {
        using Signed = std::make_signed_t<Cell>;
        value =
            static_cast<Cell>(static_cast<Signed>(value << unused) >> unused) &
            keep;
      }
      to[lane] = value;
    });
  }
}

// The common case: elements of 4 bytes.
void LoadWords(const Instruction& in, WarpContext& warp,
               const LanePointers& at) {
  for (int i = 0; i < in.vector; ++i) {
    uint32_t* to = Cells32(warp, in.operand[kAddressPlace + 1 + i]);
    ForEachLane(warp.mask, [&](int lane) {
      std::memcpy(&to[lane], at.pointer[lane] + 4 * i, 4);
    });
  }
}

void Load(const Instruction& in, WarpContext& warp) {
  const LaneAddresses address = AddressesOf(in, warp, kAddressPlace);
  LanePointers at;
  const int bytes = TypeBytes(in.type);
  const AccessKind kind = (in.flags & kStrongAccess) != 0
                              ? AccessKind::kStrongRead
                              : AccessKind::kRead;
  if (!AccessMemory(warp, in.space, warp.mask, address, bytes * in.vector, kind,
                    at)) {
    return;
  }
  if (bytes == 4 && in.mode == 4) return LoadWords(in, warp, at);
  if (in.mode == 8) return LoadElements<uint64_t>(in, warp, at);
  LoadElements<uint32_t>(in, warp, at);
}

template <typename Cell>
void StoreElements(const Instruction& in, WarpContext& warp,
                   const LanePointers& at) {
  const int bytes = TypeBytes(in.type);
  for (int i = 0; i < in.vector; ++i) {
    const Cell* from = reinterpret_cast<const Cell*>(
        warp.frame + in.operand[kAddressPlace + 1 + i]);
    ForEachLane(warp.mask, [&](int lane) {
      std::memcpy(at.pointer[lane] + i * bytes, &from[lane], bytes);
    });
  }
}

void Store(const Instruction& in, WarpContext& warp) {
  const LaneAddresses address = AddressesOf(in, warp, kAddressPlace);
  LanePointers at;
  const AccessKind kind = (in.flags & kStrongAccess) != 0
                              ? AccessKind::kStrongWrite
                              : AccessKind::kWrite;
  if (!AccessMemory(warp, in.space, warp.mask, address,
                    TypeBytes(in.type) * in.vector, kind, at)) {
    return;
  }
  if (in.mode == 8) return StoreElements<uint64_t>(in, warp, at);
  StoreElements<uint32_t>(in, warp, at);
}

// Caching and ordering hints, which change no value here.
void TakeHints(InstructionBuilder& b) {
  if (b.TakeOneOf({".relaxed", ".acquire", ".release", ".mmio"})) {
    b.out().flags |= kStrongAccess;
  }
  b.TakeOneOf({".weak", ".volatile"});
  TakeScope(b);
  b.Take(".nc");
  b.TakeOneOf({".ca", ".cg", ".cs", ".lu", ".cv", ".wb", ".wt"});
  while (
      b.TakeOneOf({".L1::evict_normal", ".L1::evict_unchanged",
                   ".L1::evict_first", ".L1::evict_last", ".L1::no_allocate",
                   ".L2::evict_normal", ".L2::evict_first", ".L2::evict_last",
                   ".L2::64B", ".L2::128B", ".L2::256B"})) {
  }
}

InstructionClass KindOf(Space space, bool store) {
  switch (space) {
    case Space::kShared:
      return store ? InstructionClass::kSharedStore
                   : InstructionClass::kSharedLoad;
    case Space::kLocal:
      return InstructionClass::kLocal;
    case Space::kParam:
    case Space::kConst:
      return InstructionClass::kConstant;
    default:
      return store ? InstructionClass::kGlobalStore
                   : InstructionClass::kGlobalLoad;
  }
}

void DecodeAccess(InstructionBuilder& b, bool store) {
  b.RequireOperands(2, 2);
  Instruction& in = b.out();
  TakeHints(b);
  in.space = TakeSpace(b);
  const auto vector = b.TakeOneOf({".v2", ".v4", ".v8"});
  in.vector = static_cast<uint8_t>(vector.has_value() ? 2 << *vector : 1);
  in.type = b.TakeType();
  const int bytes = TypeBytes(in.type);
  if (bytes == 0 || bytes * in.vector > 32) {
    return b.Fail("has no form of that type");
  }
  const auto values = b.Elements(store ? 1 : 0);
  if (values.size() != in.vector) {
    return b.Fail("as many registers as the vector has elements are needed");
  }
  b.Address(kAddressPlace, store ? 0 : 1);
  in.kind = KindOf(in.space, store);
  for (size_t i = 0; i < values.size(); ++i) {
    const int place = kAddressPlace + 1 + static_cast<int>(i);
    const int width = b.MemoryRegister(place, values[i], bytes, store);
    const bool wide = width == 8;
    if (i > 0 && wide != (in.mode == 8)) {
      return b.Fail("registers of different widths");
    }
    in.mode = static_cast<uint8_t>(width);
  }
  if (!store) {
    in.late_first = kAddressPlace + 1;
    in.late_count = in.vector;
  }
  in.run = store ? Store : Load;
}

void DecodeLoad(InstructionBuilder& b) { DecodeAccess(b, false); }
void DecodeStore(InstructionBuilder& b) { DecodeAccess(b, true); }

void Nothing(const Instruction&, WarpContext&) {}

// The address may be anything: a prefetch faults on no hardware.
void DecodePrefetch(InstructionBuilder& b) {
  b.RequireOperands(1, 1);
  TakeSpace(b);
  b.TakeOneOf({".L1", ".L2", ".L2::evict_last", ".L2::evict_normal"});
  b.out().kind = InstructionClass::kGlobalLoad;
  b.out().run = Nothing;
}

}  // namespace

OpcodeSpan MemoryOpcodes() {
  static constexpr OpcodeEntry kEntries[] = {
      {"ld", DecodeLoad},
      {"ldu", DecodeLoad},
      {"st", DecodeStore},
      {"prefetch", DecodePrefetch},
      {"prefetchu", DecodePrefetch},
  };
  return kEntries;
}

}  // namespace regatta::ptxsim
