# Writes OUT, a C++ file that defines the text of the LLVM IR files IR64 and
# IR32.
file(READ "${IR64}" ir64)
file(READ "${IR32}" ir32)
file(WRITE "${OUT}.new" "// Generated from runtime/pool.c.
namespace regatta::cpu {
extern const char kPoolIr64[];
extern const char kPoolIr32[];
const char kPoolIr64[] = R\"IR(${ir64})IR\";
const char kPoolIr32[] = R\"IR(${ir32})IR\";
}  // namespace regatta::cpu
")
file(RENAME "${OUT}.new" "${OUT}")
