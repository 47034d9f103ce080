// Register buffers of the kernel emitter: reading and writing parts of the
// values that hold them.
#include <utility>
#include <vector>

#include "base/check.h"
#include "compiler/codegen/llvm/kernel_emitter.h"

namespace regatta::cpu {

KernelEmitter::SlotPlace KernelEmitter::SlotOf(int id, int64_t first) const {
  const RegisterPlan::Slot* slot = plan_->Find(id, first);
  CHECK(slot != nullptr && first < slot->first + slot->count)
      << buffer(id).name << "[" << first << "] has no register";
  return {slots_.at({id, slot->first}), static_cast<int>(first - slot->first),
          static_cast<int>(slot->count)};
}

KernelEmitter::Val KernelEmitter::LoadRegister(int id, const Form& form) {
  if (lanes_.width == 1 || form.lane == 0) {
    return {ReadSlot(SlotOf(id, form.constant), 1, 1), false};
  }
  if (form.lane == 1) {
    return {ReadSlot(SlotOf(id, form.constant), lanes_.count, lanes_.width),
            true};
  }
  if (llvm::Value* column = LoadColumn(id, form)) return {column, true};
  llvm::Type* scalar = RegisterType(buffer(id).dtype, context());
  llvm::Value* result =
      llvm::PoisonValue::get(llvm::FixedVectorType::get(scalar, lanes_.width));
  for (int i = 0; i < lanes_.count; ++i) {
    llvm::Value* lane =
        ReadSlot(SlotOf(id, form.constant + form.lane * i), 1, 1);
    result = b_.CreateInsertElement(result, lane, i);
  }
  return {result, true};
}

// A column of a square of vectors, from all columns at once: log2(n) rounds
// that interleave the first half of the rows with the second turn n rows into n
// columns. Null when the elements do not lie so.
llvm::Value* KernelEmitter::LoadColumn(int id, const Form& form) {
  const int n = lanes_.width;
  if (lanes_.count != n || form.lane != n) return nullptr;
  const SlotPlace first = SlotOf(id, form.constant);
  std::vector<llvm::Value*> rows;
  for (int i = 0; i < n; ++i) {
    const SlotPlace place = SlotOf(id, form.constant + form.lane * i);
    auto* type =
        llvm::dyn_cast<llvm::FixedVectorType>(place.slot->getAllocatedType());
    if (type == nullptr || static_cast<int>(type->getNumElements()) != n ||
        place.count != n || place.within != first.within) {
      return nullptr;
    }
  }
  std::vector<llvm::Value*>& columns =
      levels_.back().columns[{id, form.constant - first.within}];
  if (!columns.empty()) return columns[first.within];
  for (int i = 0; i < n; ++i) {
    rows.push_back(ReadSlot(SlotOf(id, form.constant + form.lane * i), n, n));
  }
  std::vector<int> low, high;
  for (int i = 0; i < n / 2; ++i) {
    low.insert(low.end(), {i, n + i});
    high.insert(high.end(), {n / 2 + i, n + n / 2 + i});
  }
  for (int round = 1; round < n; round *= 2) {
    for (int i = 0; i < n / 2; ++i) {
      columns.push_back(b_.CreateShuffleVector(rows[i], rows[i + n / 2], low));
      columns.push_back(b_.CreateShuffleVector(rows[i], rows[i + n / 2], high));
    }
    if (round * 2 < n) rows = std::exchange(columns, {});
  }
  return columns[first.within];
}

void KernelEmitter::StoreRegister(int id, const Form& form, Val value) {
  for (Level& level : levels_) {
    std::erase_if(level.columns,
                  [&](const auto& entry) { return entry.first.first == id; });
  }
  if (lanes_.width == 1 || form.lane == 0) {
    if (value.vector) {
      value = {b_.CreateExtractElement(value.value, lanes_.count - 1), false};
    }
    WriteSlot(SlotOf(id, form.constant), 1, 1, value.value);
    return;
  }
  llvm::Value* vector = ToVector(value);
  if (form.lane == 1) {
    WriteSlot(SlotOf(id, form.constant), lanes_.count, lanes_.width, vector);
    return;
  }
  for (int i = 0; i < lanes_.count; ++i) {
    WriteSlot(SlotOf(id, form.constant + form.lane * i), 1, 1,
              b_.CreateExtractElement(vector, i));
  }
}

llvm::Value* KernelEmitter::ReadSlot(const SlotPlace& place, int count,
                                     int width) {
  llvm::Value* whole =
      b_.CreateLoad(place.slot->getAllocatedType(), place.slot);
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(whole->getType());
  if (width == 1) {
    return type == nullptr ? whole
                           : b_.CreateExtractElement(whole, place.within);
  }
  // Lanes beyond `count` may hold anything.
  const int slot_width = static_cast<int>(type->getNumElements());
  if (place.within == 0 && width == slot_width) return whole;
  std::vector<int> pick(width, llvm::PoisonMaskElem);
  for (int i = 0; i < count; ++i) pick[i] = place.within + i;
  return b_.CreateShuffleVector(whole, pick);
}

void KernelEmitter::WriteSlot(const SlotPlace& place, int count, int width,
                              llvm::Value* value) {
  auto* type =
      llvm::dyn_cast<llvm::FixedVectorType>(place.slot->getAllocatedType());
  const int slot_width =
      type == nullptr ? 1 : static_cast<int>(type->getNumElements());
  const bool whole = count == place.count && width == slot_width;
  if (!whole) {
    llvm::Value* old = b_.CreateLoad(type, place.slot);
    if (width == 1) {
      value = b_.CreateInsertElement(old, value, place.within);
    } else {
      std::vector<int> spread(slot_width, llvm::PoisonMaskElem);
      std::vector<int> blend(slot_width);
      for (int i = 0; i < slot_width; ++i) blend[i] = i;
      for (int i = 0; i < count; ++i) {
        spread[place.within + i] = i;
        blend[place.within + i] = slot_width + place.within + i;
      }
      value = b_.CreateShuffleVector(old, b_.CreateShuffleVector(value, spread),
                                     blend);
    }
  }
  b_.CreateStore(value, place.slot);
}

}  // namespace regatta::cpu
