# Expressions, operators, interpreter, targets and modules.
regatta_test(compiler_front_test
  affine_test.cc
  c_interface_test.cc
  cuda_binary_test.cc
  expression_error_test.cc
  expression_round_trip_test.cc
  half_test.cc
  interpreter_operators_test.cc
  interpreter_test.cc
  interpreter_windows_test.cc
  module_test.cc
  target_test.cc
  workload_test.cc
  LIBS regatta_expr)
# The compilers that the generated headers must please.
set_source_files_properties(c_interface_test.cc PROPERTIES COMPILE_DEFINITIONS
  "REGATTA_C_COMPILER=\"${CMAKE_C_COMPILER}\";REGATTA_CXX_COMPILER=\"${CMAKE_CXX_COMPILER}\"")
