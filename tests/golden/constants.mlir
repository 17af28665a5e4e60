module @jit_constants attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<10x3xf64>, %2: tensor<3xf64>) -> (tensor<3xf64>, tensor<f64>) {
  %3 = "stablehlo.constant"() {value = dense<[0x7FF8000000000000, 0x7FF0000000000000, -0.0]> : tensor<3xf64>} : () -> tensor<3xf64>
  %4 = "stablehlo.add"(%2, %3) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %5 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64: 1>} : (tensor<3xf64>) -> tensor<10x3xf64>
  %6 = "stablehlo.multiply"(%1, %5) : (tensor<10x3xf64>, tensor<10x3xf64>) -> tensor<10x3xf64>
  %10 = "stablehlo.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %11 = "stablehlo.reduce"(%6, %10) ({^bb0(%7: tensor<f64>, %8: tensor<f64>):
    %9 = "stablehlo.add"(%7, %8) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    "stablehlo.return"(%9) : (tensor<f64>) -> ()
  }) {dimensions = array<i64: 0, 1>} : (tensor<10x3xf64>, tensor<f64>) -> tensor<f64>
  func.return %4, %11 : tensor<3xf64>, tensor<f64>
}
}
