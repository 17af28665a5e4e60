module @jit_branches attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<3xf64>, %2: tensor<i1>) -> (tensor<3xf64>) {
  %3 = "stablehlo.convert"(%2) : (tensor<i1>) -> tensor<i32>
  %8 = "stablehlo.case"(%3) ({
    %4 = "stablehlo.constant"() {value = dense<3.0> : tensor<f64>} : () -> tensor<f64>
    %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<f64>) -> tensor<3xf64>
    %6 = "stablehlo.multiply"(%1, %5) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    "stablehlo.return"(%6) : (tensor<3xf64>) -> ()
  }, {
    %7 = "stablehlo.sine"(%1) : (tensor<3xf64>) -> tensor<3xf64>
    "stablehlo.return"(%7) : (tensor<3xf64>) -> ()
  }) : (tensor<i32>) -> (tensor<3xf64>)
  func.return %8 : tensor<3xf64>
}
}
